"""Nobody edits a Lightning or Hugging Face script for misstep: `misstep run` is enough."""

from __future__ import annotations

import pytest
from story import RunStory, updates

pytestmark = [pytest.mark.story, pytest.mark.slow]

LIGHTNING = """
    import lightning.pytorch as pl
    import torch
    from torch import nn

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 8)
            self.head = nn.Linear(8, 1)

        def forward(self, x):
            h = self.body(x)
            if self.global_step == {bad_at}:
                h = torch.log(h - 100)  # planted
            return self.head(h)

        def training_step(self, batch, index):
            x, y = batch
            return nn.functional.mse_loss(self(x), y)

        def validation_step(self, batch, index):
            x, y = batch
            self.log("val_loss", nn.functional.mse_loss(self(x), y))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    pl.seed_everything(0)
    data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.randn(24, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Net(), loader, loader)
"""

HUGGING_FACE = """
    import torch
    from torch import nn
    from transformers import Trainer, TrainingArguments

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 8)
            self.head = nn.Linear(8, 1)
            self.calls = 0

        def forward(self, x, labels=None):
            h = self.body(x)
            if self.training:
                self.calls += 1
            if self.training and self.calls - 1 == {bad_at}:
                h = torch.log(h - 100)  # planted
            y = self.head(h)
            return {{"loss": nn.functional.mse_loss(y, labels), "logits": y}}

    torch.manual_seed(0)
    data = [{{"x": torch.randn(4), "labels": torch.randn(1)}} for _ in range(24)]
    arguments = TrainingArguments(output_dir="out", num_train_epochs=1, per_device_train_batch_size=4,
                                  learning_rate=0.01, report_to=[], save_strategy="no", use_cpu=True,
                                  eval_strategy="epoch", disable_tqdm=True)
    Trainer(Net(), arguments, train_dataset=data, eval_dataset=data[:8]).train()
"""

SCRIPTS = {"lightning": LIGHTNING, "hugging face": HUGGING_FACE}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_an_unedited_script_gives_steps_and_losses(script: str, run_story: RunStory) -> None:
    result = run_story(script.format(bad_at=-1), "--level", "module")
    assert result.exit == 0, result.err
    run = result.run
    assert updates(run) == [1, 2, 3, 4, 5, 6]
    assert all(step.loss is not None for step in run.steps() if step.number > 0)
    assert run.verdict is None


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_planted_nan_in_an_unedited_script_is_named(script: str, run_story: RunStory) -> None:
    result = run_story(script.format(bad_at=3), "--level", "module")
    assert result.exit == 0, result.err
    verdict = result.run.verdict
    assert verdict is not None
    assert (verdict.step, verdict.phase, verdict.kind) == (4, "forward", "nan")
    assert "step 4" in result.err
