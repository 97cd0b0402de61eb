"""What is said of a training's memory."""

from __future__ import annotations

from misstep.sentences.text import Text

KINDS: dict[str, Text] = {
    "weights": Text("weights", "权重"),
    "inputs": Text("inputs", "输入"),
    "gradients": Text("gradients", "梯度"),
    "optimizer": Text("optimizer state", "优化器状态"),
    "activations": Text("activations", "激活值"),
    "temporary": Text("temporary", "临时张量"),
}
TOO_LONG = Text(
    "the command did not finish two steps within {seconds:.0f} s; give it longer with --seconds",
    "命令在 {seconds:.0f} 秒内没有完成两个轮次；请用 --seconds 放宽时间",
)
CANNOT_START = Text("cannot start {command}: {why}", "无法启动 {command}：{why}")
NO_STEP = Text(
    "the command ended (exit code {code}) before two updates of a PyTorch optimizer; its last line: {last}",
    "命令在完成两次 PyTorch 优化器更新之前就结束了（退出码 {code}）；其最后一行：{last}",
)
DEPENDS_ON_VALUES = Text(
    "the memory cannot be told without values: {operator} at {file}:{line} makes a shape that depends on them; measure"
    " instead with  misstep memory --measure <command>",
    "没有数值就无法得知内存：{file}:{line} 处的 {operator} 产生依赖数值的形状；"
    "请改用  misstep memory --measure <命令>  实测",
)
NOT_FOUND = Text(
    "the largest batch lies between {low} and {high}; the peak does not grow evenly with the batch",
    "最大的 batch size 在 {low} 与 {high} 之间；峰值不随 batch size 均匀增长",
)
