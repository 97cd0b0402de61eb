# truth: {kind = 'dies', exception = 'ModuleNotFoundError', line = true}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

net = nn.Linear(8, 4)
import a_package_that_is_not_there  # planted
