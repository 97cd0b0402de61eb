"""The map of calls: which function or method of PyTorch is which of MindSpore.

    surface      what both installed packages offer, with signatures          (torch_surface, mindspore_surface)
    candidates   which of one might be which of the other                     (candidates)
    samples      calls to try them on: PyTorch's own test inputs, and ours    (torch_samples, torch_recipes)
    verify       both executed on the same values, the difference recorded    (verify)
    generate     every pair in processes that may crash, resumable            (generate)
    table        the result: api_map.jsonl, one line a PyTorch name           (table)

Names suggest, numbers decide: no line of the table was written by hand.
"""
