"""Moving a network between PyTorch and MindSpore, and proving that it is the same.

params      what a network or checkpoint holds, side by side        convert   one checkpoint into the other's
lockstep    both networks layer by layer on the same values         scan      which calls have a counterpart
port        the source rewritten, each call with its proof          data      two data pipelines, element by element
"""
