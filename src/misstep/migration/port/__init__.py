"""A PyTorch source written anew for MindSpore: the same file, with what must change changed, and the rest left alone.

file        one file: every part below laid over its page
spelling    how MindSpore's names are said there, and the imports that takes
structure   classes, methods, names that are not called
loop        zero_grad · backward · step as value_and_grad
loaders     DataLoader as GeneratorDataset
hazards     what graph mode would refuse
project     files in, files out, checked against the original
"""
