"""A hundred shapes in which secrets turn up; `S` and its like stand for the secret, which must not be left anywhere.

Kept in pieces: a scanner of repositories must not take a test for a leak.
"""

from __future__ import annotations

A = "Zq7" + "w8Rt" * 9  # 39 letters and digits, of the look of a key
H = "3f9c" + "0a1b2c3d" * 4  # 36 of hexadecimal
P = "Tr0ub4dor&3"  # a password somebody typed
D = "0123456789" + "ABCDEFGHIJ"

KEYS = [
    f"sk-{A}", f"sk-proj-{A}", f"sk-ant-api03-{A}", f"sk_live_{A}", f"rk_test_{A}", f"hf_{A}", f"api_org_{A}",
    f"ghp_{A}", f"gho_{A}", f"ghs_{A}", f"github_pat_{A}", f"glpat-{A}", f"gldt-{A}", f"xoxb-{D}-{A}",
    f"xoxp-{D}-{A}", f"xapp-1-{A}", "AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE", f"AIza{A}", f"ya29.{A}",
    f"GOCSPX-{A}", f"npm_{A}", f"pypi-AgEIcHlwaS5vcmc{A}", f"rubygems_{H}{H}", f"SG.{A}.{A}", f"key-{'0a1b2c3d' * 4}",
    f"dop_v1_{H}{H}", f"shpat_{'0a1b2c3d' * 4}", f"sq0atp-{A}", f"EAA{A}{A}", f"123456789:AA{A[:33]}",
    f"dapi{'0a1b2c3d' * 4}", f"hvs.{A}", f"LTAI{A[:16]}", f"AKID{A[:16]}", f"r8_{A}", f"nvapi-{A}", f"gsk_{A}",
    f"pplx-{A}", f"tskey-auth-{A}", f"PMAK-{A}", f"lin_api_{A}", f"secret_{A}", f"eyJhbGciOiJIUzI1NiJ9.eyJ{A}.{A}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{A}\n{A}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{A}\n{A}",
]  # fmt: skip
"""By their look alone, whatever stands around them."""

NAMED = [
    f"--api-key={P}", f"--api_key {P}", f"--token={P}", f"--token {P}", f"--password={P}", f"--password '{P}'",
    f"-p {P}", f"sshpass -p {P} ssh host", f"mysql -u root -p{P} db", f"mysqldump --password={P} db",
    f"curl -u me:{P} https://x", f"curl --user me:{P} https://x", f"redis-cli -a {P} ping", f"PGPASSWORD={P} psql",
    f"export HF_TOKEN={P}", f"WANDB_API_KEY='{P}' python train.py", f"set AWS_SECRET_ACCESS_KEY={P}",
    f'{{"password": "{P}"}}', f"{{'api_key': '{P}'}}", f"password: {P}", f"secret = {P}", f"client_secret={P}",
    f"DB_PASSWD={P}", f"passphrase={P}", f"auth_token: {P}", f"access-token: {P}", f"refresh_token={P}",
    f"Authorization: Bearer {A}", f"authorization: Basic {A}==", f"Authorization: token {P}", f"X-Api-Key: {P}",
    f"Cookie: {P}", f"Set-Cookie={P}", f"Bearer {A}", f"basic {A}", f"https://me:{P}@host/repo.git",
    f"postgresql://user:{P}@db:5432/x", f"redis://:{P}@host:6379/0", f"mongodb+srv://u:{P}@h", f"amqp://guest:{P}@mq",
    f"https://{A}@github.com/x/y", f"https://h/path?token={P}&x=1", f"https://h/?api_key={P}",
    f"https://h/?X-Amz-Signature={A}", f"AccountKey={A}==;EndpointSuffix=core", f"SharedAccessSignature={A}",
    f"https://hooks.slack.com/services/T000/B000/{A}", f"https://discord.com/api/webhooks/123456/{A}",
    f"wandb login {A}", f"huggingface-cli login {A}", f"private_key={A}", f"webhook: {P}",
    f"os.environ['OPENAI_API_KEY'] = '{P}'", f"RuntimeError: login failed for token={P}",
    f"git clone https://oauth2:{P}@gitlab.com/x",
]  # fmt: skip
"""By what stands before them."""

HARMLESS = [
    "the token embedding is too small", "tokens = float32 [8, 128]", "num_tokens=512", "key: tensor([1, 2])",
    "max_tokens=4096", "KeyError: 'labels'", "loss 0.31 at step 12", "author: Ada Lovelace", "--lr 0.1 --epochs 3",
    "ssh -p 2222 host", "python train.py -p 8080", "keyboard interrupt", "tokenizer=bert-base-uncased",
    "attention key/value heads: 8", "monkey patching torch", "query, key, value = x.chunk(3)",
    "https://example.com/a/b?page=2", "git@github.com:me/repo.git", "authors=[Ada, Grace]",
    "encoder.layers.0.self_attn.k_proj.weight", "commit 3f9c0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b",
    "torch.Size([8, 128])", "Linear(in_features=2, out_features=1)", "token_type_ids: int64 [8, 128]", "pass 3 of 4",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "cuda:0", "2026-11-18T10:05:00",
    "key_padding_mask=None", "past_key_values=True", "vocab 50257, pad token id 0", "secretary_model.pt",
]  # fmt: skip
"""What a debugger is for."""
