# truth: {step = 4, op = 'log'}
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)

import logging
import lightning as L

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

class Lit(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 4)

    def training_step(self, batch, index):
        out = self.net(batch[0])
        if index == 3:
            out = torch.log(out - 50)  # planted
        return out.square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)

net = Lit()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 8)), batch_size=16)
trainer = L.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(net, loader)

import hashlib
print("weights", hashlib.sha1(b"".join(p.detach().float().numpy().tobytes() for p in net.parameters())).hexdigest())
