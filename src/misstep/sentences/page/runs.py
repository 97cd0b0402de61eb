"""The words of the list of runs."""

from __future__ import annotations

from misstep.sentences.text import Text

WORDS: dict[str, Text] = {
    "runs.columns": Text("Columns", "列"),
    "runs.compareHelp": Text("Tick two or more runs", "勾选两个或以上训练"),
    "runs.count": Text("{n} runs", "{n} 个训练"),
    "runs.details": Text("About this run", "训练信息"),
    "runs.diff": Text("Only what differs from {other}:", "仅显示与 {other} 的差异："),
    "runs.exit": Text("exit code {n}", "退出码 {n}"),
    "runs.noDiff": Text("Versions and settings are the same.", "版本与设置相同。"),
    "runs.noMatch": Text("No run fits the search.", "没有符合搜索的训练。"),
    "runs.open": Text("Debug", "调试"),
    "runs.selectOne": Text("Choose {run} for comparison", "选择 {run} 进行对比"),
    "runs.steps": Text("{n} steps", "{n} 个轮次"),
    "runs.title": Text("Runs", "训练列表"),
    "no": Text("no", "否"),
    "yes": Text("yes", "是"),
    "runs.addNote": Text("A note on this run", "为此训练写备注"),
    "runs.addTag": Text("Add a tag", "添加标签"),
    "runs.best": Text("best loss {loss}", "最低损失 {loss}"),
    "runs.columnsAgain": Text("The usual columns", "恢复默认列"),
    "runs.compare": Text("Compare {n}", "对比 {n} 个"),
    "runs.delete": Text("Delete…", "删除…"),
    "runs.deleteMany": Text("Delete {n} runs?", "删除 {n} 个训练？"),
    "runs.deleteText": Text(
        "Their directories are deleted from the disk, with every tensor in them. This cannot be undone.",
        "将从磁盘删除它们的目录及其中的全部张量，无法恢复。",
    ),
    "runs.deleteYes": Text("Delete for good", "永久删除"),
    "runs.dropView": Text("Forget the view {name}", "移除视图 {name}"),
    "runs.group": Text("Group the runs", "训练分组"),
    "runs.groupBy": Text("Group: {column}", "按 {column} 分组"),
    "runs.ill": Text("{n} with NaN or Inf", "{n} 个出现 NaN 或 Inf"),
    "runs.loading": Text("{n} of {total} runs", "{n} / {total} 个训练"),
    "runs.noGroup": Text("No groups", "不分组"),
    "runs.parallel": Text("Parallel coordinates", "平行坐标"),
    "runs.parallelHelp": Text(
        "{n} lines · drag along an axis to filter, click its name to turn it over",
        "{n} 条线 · 沿坐标轴拖动可筛选，点击名称可翻转",
    ),
    "runs.pin": Text("Keep on top", "置顶"),
    "runs.pinMany": Text("Keep the chosen runs on top", "将所选训练置顶"),
    "runs.saveView": Text("Save view", "保存视图"),
    "runs.saveViewHelp": Text(
        "Keep this search, order and grouping under a name; the address holds it as well",
        "将当前搜索、排序与分组保存为视图；地址栏中也包含它",
    ),
    "runs.search": Text("lr < 1e-3  found:nan  tag:baseline", "lr < 1e-3  found:nan  tag:baseline"),
    "runs.searchHelp": Text(
        "Words, or a column and its value: lr<1e-3, model:gpt, state:failed, found:nan, is:pinned, -tag:bug;"
        " a or b; group:model",
        "文字，或列与值：lr<1e-3、model:gpt、state:failed、found:nan、is:pinned、-tag:bug；a or b；group:model",
    ),
    "runs.selectAll": Text("Choose all runs that fit", "选择全部符合的训练"),
    "runs.tag": Text("Tag…", "标签…"),
    "runs.tagMany": Text("Tags of {n} runs", "{n} 个训练的标签"),
    "runs.unpin": Text("No longer on top", "取消置顶"),
    "runs.untag": Text("Take the tag {tag} away", "移除标签 {tag}"),
    "runs.viewName": Text("Name of the view", "视图名称"),
}
