"""Layers, losses, optimizers and schedules: constructed on both sides, fed the same, and compared by the lockstep.

recipes      how each class of PyTorch is constructed and what goes in
suggestions  which class of MindSpore might be it, and with which arguments
pairs        one construction on both sides, compared
verify       every recipe of a class against every suggestion: the ways that hold
"""
