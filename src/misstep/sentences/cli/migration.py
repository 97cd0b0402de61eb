"""What the commands about migration say, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_PARAMS = Text(
    "Count and list the parameters of a network, checkpoint or run; with two, pair them.\n\n"
    "A and B are networks (model.py:build), checkpoints of either framework, or runs. Pairs are found by names, shapes,"
    " graph position and values. Exit code 3 when a parameter has no partner.",
    "统计并列出网络、Checkpoint 或训练中的参数；给出两个时逐一配对。\n\n"
    "A 与 B 可以是网络（model.py:build）、任一框架的 Checkpoint 或训练。"
    "配对依据名称、形状、图中位置和数值。有参数找不到对应时退出码为 3。",
)
HELP_VALUES = Text("Let equal values decide which parameter is which.", "由相同的数值决定参数的对应关系。")
HELP_DATA_ORDER = Text(
    "A batch to run both networks on, so that the order of execution can decide.",
    "用于运行两个网络的一批数据，使执行顺序可以参与配对。",
)
HELP_MAP = Text(
    "A map file for names no rule knows (TOML or JSON).", "规则无法识别的名称所用的映射文件（TOML 或 JSON）。"
)
HELP_WRITE_MAP = Text("Write the pairs found to this map file, to edit.", "把找到的配对写入该映射文件，供编辑。")
HELP_ALL = Text("List every parameter, not only those that need a look.", "列出全部参数，而不仅是需要查看的。")
COUNTS = Text(
    "{label}: {tensors} parameters, {numbers} numbers, {trainable} trainable",
    "{label}：{tensors} 个参数，共 {numbers} 个数值，其中可训练 {trainable} 个",
)
COUNTS_UNKNOWN = Text(
    "{label}: {tensors} parameters, {numbers} numbers; the file does not say which are trainable",
    "{label}：{tensors} 个参数，共 {numbers} 个数值；文件未说明哪些可训练",
)
FROZEN = Text("frozen: {names}", "已冻结：{names}")
SHARED = Text("shared: {names}", "共享：{names}")
BUFFERS = Text("buffers: {count}", "缓冲区：{count} 个")
OPTIMIZER = Text("optimizer state: {count} tensors", "优化器状态：{count} 个张量")
ALL_PAIRED = Text("all {count} parameters are paired", "全部 {count} 个参数均已配对")
SOME_PAIRED = Text(
    "{paired} parameters are paired, {shapes} have another shape, {left} are only in {a}, {right} only in {b}",
    "{paired} 个参数已配对，{shapes} 个形状不同，{left} 个仅在 {a} 中，{right} 个仅在 {b} 中",
)
NO_COUNTERPART = Text(
    "no counterpart needed: {names}",
    "无需对应：{names}",
)
ONLY_IN = Text("only in {label}: {name} {shape}", "仅在 {label} 中：{name} {shape}")
NEAREST = Text("; nearest: {name}", "；最接近：{name}")
OTHER_SHAPE = Text(
    "another shape: {left} {left_shape}, {right} {right_shape}", "形状不同：{left} {left_shape}，{right} {right_shape}"
)
COUNT_DIFFERS = Text("trainable numbers differ: {left} and {right}", "可训练数值的个数不同：{left} 与 {right}")
TRAINABLE_DIFFERS = Text("trained on one side only: {names}", "仅一侧参与训练：{names}")

ABOUT_CONVERT = Text(
    "Convert a checkpoint of one framework into the other's.\n\n"
    "SRC is a .pt, .pth, .safetensors, .npz, .ckpt or the index of a sharded one; the suffix of DST says what to write."
    " With --like, names are paired with those of the network that will load the file. The output is written whole or"
    " not at all, and read back.",
    "把一个框架的 Checkpoint 转换为另一个框架的格式。\n\n"
    "SRC 可以是 .pt、.pth、.safetensors、.npz、.ckpt 或分片索引；写出的格式由 DST 的后缀决定。"
    "给出 --like 时，名称与将要加载该文件的网络配对。输出要么完整写入，要么不写，并在写入后读回核对。",
)
HELP_LIKE = Text(
    "The network that will load the file, as model.py:build.", "将要加载该文件的网络，写作 model.py:build。"
)
HELP_OF = Text(
    "The network the file came from; with --data, the order of execution pairs what names do not.",
    "该文件所属的网络；与 --data 合用时，名称无法配对的参数按执行顺序配对。",
)
HELP_DROP = Text("Leave out tensors that fit this pattern; may be repeated.", "略去匹配该模式的张量；可重复。")
HELP_RENAME = Text(
    "Change names, like 'backbone.*=*'; applied to the new names; may be repeated.",
    "修改名称，例如 'backbone.*=*'；作用于转换后的名称；可重复。",
)
HELP_DTYPE = Text(
    "Store floating-point tensors as float32, float16, bfloat16 or float64.",
    "以 float32、float16、bfloat16 或 float64 存储浮点张量。",
)
HELP_DRY_RUN = Text("Only show what would be written.", "只显示将要写入的内容。")
CONVERTED = Text(
    "wrote {path}: {count} tensors, {renamed} renamed, {turned} turned",
    "已写入 {path}：{count} 个张量，其中改名 {renamed} 个，调整布局 {turned} 个",
)
WOULD_CONVERT = Text(
    "would write {path}: {count} tensors, {renamed} renamed, {turned} turned",
    "将写入 {path}：{count} 个张量，其中改名 {renamed} 个，调整布局 {turned} 个",
)
LEFT_OUT = Text("left out: {names}", "未写入：{names}")
MISSING = Text("the network wants, and the file does not hold: {names}", "网络需要而文件中没有：{names}")
UNCERTAIN = Text(
    "the file alone does not say what kind of layer these belong to: {names}; --like model.py:build decides",
    "仅凭文件无法判断以下参数所属的层类型：{names}；可用 --like model.py:build 确定",
)

ABOUT_MIGRATE = Text(
    "Check that a PyTorch and a MindSpore network are the same: parameters, model, inference, training.\n\n"
    "`misstep migrate check` gives both networks the PyTorch one's weights and the same batch, and walks the stages"
    " until one fails. Each layer of the MindSpore network gets the PyTorch layer's own input and incoming gradient, so"
    " every layer that differs is named at once. Exit code 3 when a stage fails.",
    "检查 PyTorch 网络与 MindSpore 网络是否一致：参数、模型、推理、训练。\n\n"
    "`misstep migrate check` 把 PyTorch 网络的权重和同一批数据交给两个网络，逐阶段检查直到某一阶段失败。"
    "MindSpore 的每一层都接收 PyTorch 对应层的输入和反向梯度，因此一次即可指出所有不同的层。有阶段失败时退出码为 3。",
)
HELP_TORCH = Text("The PyTorch network, as model.py:build.", "PyTorch 网络，写作 model.py:build。")
HELP_MINDSPORE = Text("The MindSpore network, as model.py:build.", "MindSpore 网络，写作 model.py:build。")
HELP_BATCH = Text(
    "One batch as .npz; arrays named label, target or y go to the loss.",
    "一批数据（.npz）；名为 label、target 或 y 的数组交给损失函数。",
)
HELP_GO_ON = Text("Walk the later stages too when one fails.", "某一阶段失败后仍继续后面的阶段。")
HELP_LAYERS = Text("Also print every layer with its difference.", "同时打印每一层及其差异。")
STAGE_PARAMETERS = Text("parameters", "参数")
STAGE_MODEL = Text("model", "模型")
STAGE_INFERENCE = Text("inference", "推理")
STAGE_TRAINING = Text("training", "训练")
STAGE_PASSED = Text("passed", "通过")
STAGE_FAILED = Text("failed", "失败")
STAGE_LINE = Text("{stage}: {status}, {checked} checked", "{stage}：{status}，检查 {checked} 项")
NO_OPTIMIZER = Text(
    "the update was not compared: return the optimizer from both functions, as (network, loss, optimizer)",
    "未比较参数更新：请让两个函数返回 (网络, 损失函数, 优化器)",
)
FOUND_ARGUMENT = Text(
    "{layer}: {kind} {parameter} is {right} here, {left} there{apart}; pass {fix}",
    "{layer}：{kind} 的 {parameter} 这里是 {right}，那里是 {left}{apart}；请传入 {fix}",
)
FOUND_DEFAULT = Text(
    "{layer}: {kind} {parameter} is {right} here by default, {left} there{apart}; pass {fix}",
    "{layer}：{kind} 的 {parameter} 这里取默认值 {right}，那里是 {left}{apart}；请传入 {fix}",
)
FOUND_TRAINED = Text(
    "{layer} is {left} in PyTorch and {right} in MindSpore", "{layer} 在 PyTorch 中为 {left}，在 MindSpore 中为 {right}"
)
APART = Text("; {number} apart", "；相差 {number}")
FOUND_OUTPUT = Text(
    "{layer}: {kind} computes something else from the same input and weights{apart}",
    "{layer}：输入和权重相同，但 {kind} 的计算结果不同{apart}",
)
FOUND_GRADIENT = Text(
    "{layer}: {kind} has another gradient for the same incoming gradient{apart}",
    "{layer}：反向输入相同，但 {kind} 的梯度不同{apart}",
)
FOUND_WHOLE_GRADIENT = Text(
    "{layer}: the gradient of the whole network differs{apart}, though every layer alone is right; look for a"
    " stop_gradient or detach between layers",
    "{layer}：整个网络的梯度不同{apart}，而每一层单独都正确；请检查层与层之间的 stop_gradient 或 detach",
)
FOUND_STATISTICS = Text(
    "{layer}: {parameter} moves differently in training{apart}", "{layer}：训练时 {parameter} 的更新不同{apart}"
)
FOUND_BETWEEN = Text(
    "the input of {layer} differs{apart} although all layers before it are right: look at the code in front of it",
    "{layer} 的输入不同{apart}，而之前的各层都正确：请检查它前面的代码",
)
FOUND_AFTER = Text(
    "the output of the network differs{apart} although all layers are right: look at the code after the last layer",
    "网络的输出不同{apart}，而各层都正确：请检查最后一层之后的代码",
)
FOUND_SHAPE = Text(
    "{layer}: shape {left} in PyTorch, {right} in MindSpore", "{layer}：PyTorch 中形状为 {left}，MindSpore 中为 {right}"
)
FOUND_ONLY_TORCH = Text("only in the PyTorch network: {layer}{fix}", "仅 PyTorch 网络有：{layer}{fix}")
FOUND_ONLY_MINDSPORE = Text("only in the MindSpore network: {layer}{fix}", "仅 MindSpore 网络有：{layer}{fix}")
FOUND_NOT_RUN = Text("{layer} ({kind}) has no counterpart that runs", "{layer}（{kind}）没有对应的执行")
FIX_PASS = Text("; pass {fix} to the MindSpore layer", "；请给 MindSpore 的层传入 {fix}")
FOUND_LOSS = Text(
    "the loss is {left} in PyTorch and {right} in MindSpore, more than 1 per mille apart",
    "PyTorch 的损失为 {left}，MindSpore 为 {right}，相差超过千分之一",
)
FOUND_UPDATE = Text(
    "{left} and {right} update the weights differently from {layer} on{apart}, fed with the same gradients",
    "梯度相同，但 {left} 与 {right} 从 {layer} 起对权重的更新不同{apart}",
)
FOUND_BROKEN = Text("the MindSpore network stops at {layer}: {left}", "MindSpore 网络在 {layer} 处中断：{left}")
ALL_SAME = Text("the two networks are the same", "两个网络一致")

ABOUT_DATA = Text(
    "Read a data pipeline through and say what is wrong with it; with two, compare them element by element.\n\n"
    "PIPELINE and OTHER are functions in files (data.py:build) that return a PyTorch Dataset or DataLoader, a MindSpore"
    " dataset, or a list. Exit code 3 when something is found.",
    "完整读取一条数据流水线并指出其中的问题；给出两条时逐个元素比较。\n\n"
    "PIPELINE 与 OTHER 写作 data.py:build，函数返回 PyTorch 的 Dataset 或 DataLoader、MindSpore 数据集或列表。"
    "发现问题时退出码为 3。",
)
DATA_READ = Text(
    "{delivered} samples in {seconds} s, columns: {columns}", "{seconds} 秒内读取 {delivered} 个样本，列：{columns}"
)
DATA_FINE = Text("nothing strange", "未发现异常")
DATA_EQUAL = Text("both pipelines deliver the same", "两条流水线的数据相同")
DATA_EMPTY = Text("it delivers nothing", "没有任何样本")
DATA_LENGTH = Text("it says it has {left} samples and delivers {right}", "声称有 {left} 个样本，实际为 {right} 个")
DATA_COLUMNS = Text(
    "{count} samples have {right} columns where the others have {left}: {samples}",
    "{count} 个样本有 {right} 列，其余为 {left} 列：{samples}",
)
DATA_DTYPE = Text("column {column} is {left}, and sometimes {right}", "列 {column} 的类型为 {left}，有时为 {right}")
DATA_NOT_FINITE = Text(
    "column {column} has NaN or Inf in {count} samples: {samples}",
    "列 {column} 在 {count} 个样本中含 NaN 或 Inf：{samples}",
)
DATA_CONSTANT = Text("column {column} is {left} everywhere", "列 {column} 处处为 {left}")
DATA_NEGATIVE_LABEL = Text(
    "labels in column {column} go down to {left} ({count} times)", "列 {column} 的标签低至 {left}（{count} 次）"
)
DATA_MISSING_CLASS = Text("column {column} never has class {left}", "列 {column} 从未出现类别 {left}")
DATA_UNBALANCED = Text(
    "classes in column {column} are unbalanced: most often {left}, least often {right}",
    "列 {column} 的类别不均衡：最多的为 {left}，最少的为 {right}",
)
DATA_NOT_NORMALISED = Text(
    "column {column} looks not normalised: values from {left} to {right}",
    "列 {column} 似乎未归一化：取值 {left} 到 {right}",
)
DATA_DUPLICATES = Text("{count} samples come twice: {samples}", "{count} 个样本重复出现：{samples}")
DATA_SAME_ORDER = Text(
    "it is asked to shuffle, but the first {count} samples come in the same order twice",
    "要求打乱顺序，但两次读取的前 {count} 个样本顺序相同",
)
DATA_SLOW = Text(
    "{count} samples are slow: up to {left} ms, where the median is {right} ms: {samples}",
    "{count} 个样本耗时过长：最长 {left} 毫秒，中位数为 {right} 毫秒：{samples}",
)
DATA_OTHER_LENGTH = Text(
    "{left} samples on one side, {right} on the other",
    "一侧有 {left} 个样本，另一侧有 {right} 个",
)
DATA_OTHER_COLUMNS = Text("{left} columns on one side, {right} on the other", "一侧有 {left} 列，另一侧有 {right} 列")
DATA_OTHER_VALUES = Text(
    "{count} samples differ; the first is {samples}, column {column}: {left} and {right}",
    "{count} 个样本不同；第一个为 {samples}，列 {column}：{left} 与 {right}",
)
DATA_OTHER_ORDER = Text("the same samples in another order ({count} places)", "样本相同但顺序不同（{count} 处）")
DATA_OTHER_DTYPE = Text(
    "column {column} is {left} on one side, {right} on the other",
    "列 {column} 一侧为 {left}，另一侧为 {right}",
)

LOADS = Text("{file} loads into {network} as it is", "{file} 可直接加载到 {network}")
NOT_LOADED_FRAMEWORK = Text(
    "not loaded: {file} is of the other framework; convert it:  misstep convert {file} NEW --like {network}",
    "未加载：{file} 属于另一个框架；请先转换：misstep convert {file} NEW --like {network}",
)
NOT_LOADED_PREFIX = Text(
    "not loaded, the names have another prefix ({count}): {names};  misstep convert {file} NEW --rename '{old}={new}'",
    "未加载，名称前缀不同（{count} 个）：{names}；misstep convert {file} NEW --rename '{old}={new}'",
)
NOT_LOADED_AUTO_PREFIX = Text(
    "not loaded, the names lack the path of their layer on one side ({count}): {names}; a cell was made with"
    " auto_prefix=False, or its parameters were named by hand",
    "未加载，一侧的名称缺少所在层的路径（{count} 个）：{names}；某个 Cell 以 auto_prefix=False 创建，或参数由手工命名",
)
NOT_LOADED_RENAMED = Text(
    "not loaded, the names are others ({count}), such as {old} for {new};  misstep convert {file} NEW --like {network}",
    "未加载，名称不同（{count} 个），例如 {old} 对应 {new}；misstep convert {file} NEW --like {network}",
)
NOT_LOADED_SHAPE = Text(
    "not loaded, the shapes differ ({count}): {names}; the network was built with other sizes",
    "未加载，形状不同（{count} 个）：{names}；网络的尺寸设置不同",
)
NOT_LOADED_MISSING = Text("not in the file ({count}): {names}", "文件中没有（{count} 个）：{names}")
NOT_LOADED_UNEXPECTED = Text(
    "in the file, unknown to the network ({count}): {names}",
    "文件中有而网络不认识（{count} 个）：{names}",
)
