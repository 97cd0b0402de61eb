"""Checkpoints of any framework, read without it: `.ckpt`, `.pt`/`.pth`, `.safetensors`, `.npz`.

The format is told by the content, not by the suffix: Lightning's `.ckpt` is PyTorch's, MindSpore writes safetensors.
"""

from __future__ import annotations

from pathlib import Path

from misstep.errors import FormatError
from misstep.store.checkpoint.mindspore_ckpt import read_mindspore_ckpt, write_mindspore_ckpt
from misstep.store.checkpoint.npz import looks_like_npz, read_npz, write_npz
from misstep.store.checkpoint.record import Checkpoint, Held, section_of
from misstep.store.checkpoint.safetensors_file import looks_like_safetensors, read_safetensors, write_safetensors
from misstep.store.checkpoint.sharded import looks_sharded, read_sharded
from misstep.store.checkpoint.torch_file import looks_like_torch, read_torch

__all__ = [
    "SUFFIXES",
    "Checkpoint",
    "Held",
    "looks_like_checkpoint",
    "read_checkpoint",
    "read_mindspore_ckpt",
    "read_npz",
    "read_safetensors",
    "read_torch",
    "section_of",
    "write_mindspore_ckpt",
    "write_npz",
    "write_safetensors",
]

SUFFIXES = (".ckpt", ".pt", ".pth", ".bin", ".safetensors", ".npz")


def read_checkpoint(path: str | Path) -> Checkpoint:
    """The tensors of a checkpoint, whatever wrote it.

    >>> read_checkpoint("model.pth")["fc.weight"]
    """
    where = Path(path)
    if looks_sharded(where):
        return read_sharded(where, read_checkpoint)
    try:
        with open(where, "rb") as file:
            head = file.read(64)
    except IsADirectoryError:
        raise FormatError(
            f"{where} is a folder, not a checkpoint file; name the file inside it", path=str(where)
        ) from None
    except FileNotFoundError:
        raise FormatError(f"no such file: {where}", path=str(where)) from None
    if not head:
        raise FormatError(f"{where} is empty; the writer was stopped before it began", path=str(where))
    if looks_like_torch(where, head):
        return read_torch(where)
    if looks_like_npz(where, head):
        return read_npz(where)
    if looks_like_safetensors(head):
        return read_safetensors(where)
    if head[:1] == b"\n":
        return read_mindspore_ckpt(where)
    if head[:2] == b"PK" or head[:1] == b"\x80":
        return read_torch(where)
    raise FormatError(
        f"{where} is none of the known checkpoint formats (MindSpore .ckpt, PyTorch .pt/.pth, safetensors, .npz); "
        f"it may be encrypted or cut short",
        path=str(where),
    )


def looks_like_checkpoint(path: str | Path) -> bool:
    """True when the suffix is one of a checkpoint (the content decides which), and for one in many files."""
    return Path(path).suffix in SUFFIXES or looks_sharded(Path(path))
