"""What the commands about tuning say, in both languages."""

from __future__ import annotations

from misstep.sentences.text import Text

ABOUT_TUNE = Text(
    "Search for the best hyper-parameters: every trial is an ordinary run, Optuna proposes the values.\n\n"
    "FILE is a study file with a command, parameters and a target; a file of MindOptimizer is one too. A trial that"
    " meets a NaN, an error, a loss that runs away or a limit is ended at once. Killed workers lose nothing: start the"
    " same command again, here or on other machines that share the storage.",
    "搜索最优超参：每次试验都是一次普通的训练，由 Optuna 给出取值。\n\n"
    "FILE 为 study 文件，包含命令、参数和目标；MindOptimizer 的配置文件可直接使用。"
    "出现 NaN、错误、损失发散或超出限制的试验会立即结束。进程被杀不会丢失任何结果："
    "在本机或共享同一存储的其他机器上再次启动同样的命令即可。",
)
ABOUT_STATUS = Text("Show how a study stands, trial by trial.", "显示 study 的进展与每次试验。")
ABOUT_BEST = Text("Show the best trial and the command that trains with its values.", "显示最优试验及其训练命令。")
ABOUT_IMPORTANCE = Text("Show which parameters matter.", "显示各参数的重要性。")
ABOUT_STOP = Text(
    "End a study after the running trials; with --now, end those too.", "在当前试验结束后停止 study；--now 立即停止。"
)
ABOUT_EXPORT = Text("Write every trial of a study as CSV or JSON.", "将 study 的所有试验导出为 CSV 或 JSON。")
ABOUT_PRUNE = Text("End running trials of a study by hand.", "手动结束 study 中正在运行的试验。")
ABOUT_SERVE = Text(
    "Stand between a database and hundreds of workers: a gRPC proxy that also sweeps dead trials.",
    "在数据库与大量工作进程之间提供 gRPC 代理，并清理失效的试验。",
)
SUBCOMMANDS = Text("More:", "更多：")

HELP_TRIALS = Text("How many trials in all; the file's number unless given.", "试验总数；默认取文件中的值。")
HELP_WORKERS = Text("How many trials at once in this process.", "本进程同时运行的试验数。")
HELP_STORAGE = Text(
    "Where the study is kept: a file, sqlite:///…, postgresql://…, mysql://…, grpc://host:port.",
    "study 的存储位置：文件、sqlite:///…、postgresql://…、mysql://…、grpc://host:port。",
)
HELP_RAY = Text(
    "Run the trials on a Ray cluster: local, auto, or its address.", "在 Ray 集群上运行试验：local、auto 或集群地址。"
)
HELP_LIKE = Text(
    "Propose a study file from the arguments of this command, and write it to FILE or print it.",
    "根据该命令的参数生成 study 文件，写入 FILE 或直接打印。",
)
HELP_SCHEMA = Text(
    "Print the JSON Schema of study files, for editors.", "打印 study 文件的 JSON Schema，供编辑器使用。"
)
HELP_ITER = Text("MindOptimizer's name for --trials.", "MindOptimizer 中 --trials 的名称。")
HELP_CONFIG = Text("MindOptimizer's way to name the file.", "MindOptimizer 指定文件的方式。")
HELP_TARGET = Text("Of which target, when there are several.", "有多个目标时指定其中一个。")
HELP_NOW = Text(
    "End the running trials too; they are run again when the study goes on.",
    "同时结束正在运行的试验；study 继续时会重新运行。",
)
HELP_FORMAT = Text("csv or json.", "csv 或 json。")
HELP_TO = Text("The file to write; the terminal unless given.", "写入的文件；默认输出到终端。")
HELP_MOST = Text("How many trials to list.", "列出的试验数量。")
HELP_SERVE_HOST = Text("Address to listen on.", "监听地址。")
HELP_SERVE_PORT = Text("Port to listen on.", "监听端口。")

NO_FILE = Text(
    "a study file is missing; to make one:  misstep tune --like 'python train.py'",
    "缺少 study 文件；生成一个：  misstep tune --like 'python train.py'",
)
EXISTS = Text("{file} is there already; name another file", "{file} 已存在；请使用其他文件名")
WROTE = Text(
    "wrote {file}; look at the ranges, then:  misstep tune {file}",
    "已写入 {file}；检查取值范围后执行：  misstep tune {file}",
)
BEGINS = Text(
    "study {name}: {trials} trials of {command}, {workers} at once, kept in {storage}",
    "study {name}：{trials} 次试验，命令 {command}，同时运行 {workers} 个，存储于 {storage}",
)
GOES_ON = Text("it goes on: {done} of {trials} trials are done", "继续：已完成 {done}/{trials} 次试验")
BEGAN = Text("trial {number} began: {values}", "试验 {number} 开始：{values}")
COMPLETE = Text("trial {number}: {target} {value}  {values}{best}", "试验 {number}：{target} {value}  {values}{best}")
IS_BEST = Text("  best so far", "  当前最优")
PRUNED = Text("trial {number} pruned ({ended}): {why}  {values}", "试验 {number} 已剪枝（{ended}）：{why}  {values}")
FAILED = Text("trial {number} failed: {why}  {values}", "试验 {number} 失败：{why}  {values}")
STALE = Text(
    "trial {number} was stale: its worker is gone, its values are run again",
    "试验 {number} 已失效：其工作进程已不存在，取值将重新运行",
)
STATUS = Text(
    "{name}: {done} of {trials} · {running} running · {pruned} pruned",
    "{name}：{done}/{trials} · 运行中 {running} · 剪枝 {pruned}",
)
STATUS_BEST = Text("best {value} (trial {number})", "最优 {value}（试验 {number}）")
STATUS_LEFT = Text("{time} left", "剩余 {time}")
DONE = Text("{complete} complete, {pruned} pruned, {failed} failed", "完成 {complete}，剪枝 {pruned}，失败 {failed}")
BEST = Text("best: trial {number}, {target} {value}", "最优：试验 {number}，{target} {value}")
BEST_FRONT = Text("{count} trials that no other beats in all targets:", "{count} 次试验在所有目标上不被其他试验超越：")
NO_BEST = Text("no trial is complete yet", "尚无完成的试验")
LOOK = Text("look at it:  misstep show {run}", "查看：  misstep show {run}")
TRAIN = Text("train with its values:  {command}", "用其取值训练：  {command}")
INTERRUPTED = Text(
    "stopped; the same command goes on from here:  {command}", "已停止；再次执行同样的命令即可继续：  {command}"
)
STOPPING = Text("{name} ends after its running trials", "{name} 将在当前试验结束后停止")
STOPPING_NOW = Text(
    "{name} ends now; its running trials are run again when it goes on",
    "{name} 立即停止；正在运行的试验在继续时会重新运行",
)
PRUNING = Text("trials {numbers} of {name} end now", "{name} 的试验 {numbers} 将立即结束")
NOT_RUNNING = Text(
    "trial {number} of {name} is not running; it is {state}", "{name} 的试验 {number} 未在运行；状态为 {state}"
)
EXPORTED = Text("wrote {count} trials to {file}", "已将 {count} 次试验写入 {file}")
SERVING = Text(
    "serving {storage} at grpc://{host}:{port}; workers:  misstep tune study.yaml --storage grpc://{host}:{port}",
    "正在 grpc://{host}:{port} 提供 {storage}；工作进程：  misstep tune study.yaml --storage grpc://{host}:{port}",
)
MORE = Text("{count} more; --most {all} lists them", "还有 {count} 次；--most {all} 列出全部")

COLUMN_TRIAL = Text("trial", "试验")
COLUMN_STATE = Text("state", "状态")
COLUMN_RUN = Text("run", "训练")
COLUMN_WHY = Text("why", "原因")
COLUMN_PARAMETER = Text("parameter", "参数")
COLUMN_IMPORTANCE = Text("importance", "重要性")
STATES: dict[str, Text] = {
    "complete": Text("complete", "完成"),
    "pruned": Text("pruned", "剪枝"),
    "failed": Text("failed", "失败"),
    "running": Text("running", "运行中"),
    "waiting": Text("waiting", "等待"),
    "stale": Text("stale", "失效"),
    "interrupted": Text("interrupted", "中断"),
    "infeasible": Text("infeasible", "不满足约束"),
    "surplus": Text("surplus", "多余"),
}
ENDED: dict[str, Text] = {
    "nan": Text("NaN", "NaN"),
    "error": Text("error", "错误"),
    "divergence": Text("divergence", "发散"),
    "dead": Text("dead weights", "权重不更新"),
    "timeout": Text("timeout", "超时"),
    "memory": Text("memory", "内存"),
    "pruner": Text("behind others", "落后于其他试验"),
    "asked": Text("by hand", "手动"),
    "probe": Text("range test", "范围测试"),
}
