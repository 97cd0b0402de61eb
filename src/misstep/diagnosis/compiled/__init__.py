"""What a framework's compiler did with a training program: graphs, breaks, compilations, and what they cost."""

from misstep.diagnosis.compiled.report import Break, Function, GraphReport, Hooks, graph_report

__all__ = ["Break", "Function", "GraphReport", "Hooks", "graph_report"]
