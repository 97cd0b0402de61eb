"""A gRPC proxy between a database and many workers; behind it, dead trials are swept by the server.

Optuna's proxy speaks for databases only. Workers behind it have no lock and no sweeper of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from misstep.errors import TuneError, need
from misstep.sentences import tune as sentences
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import Place, is_url
from misstep.tuning.storage.shared import SharedStudy, open_study

SWEEP_SECONDS = 5.0
GRACE_SECONDS = 60.0


def serve(storage: str, host: str, port: int, ready: Callable[[], None], *, grace: float = GRACE_SECONDS) -> None:
    """Serve until interrupted."""
    if not is_url(storage) or storage.startswith("grpc"):
        raise TuneError(sentences.NO_PROXY_FOR.of(storage=storage))
    need("grpc", "for the proxy", extra="tune")
    optuna = need("optuna", "for tuning", extra="tune")
    connection = Connection(Place(storage))
    over = threading.Event()
    threading.Thread(target=_sweeping, args=(connection, over, grace), name="misstep-sweep", daemon=True).start()
    ready()
    try:
        optuna.storages.run_grpc_proxy_server(connection.backend, host=host, port=port)
    except KeyboardInterrupt:
        pass
    finally:
        over.set()


def _sweeping(connection: Connection, over: threading.Event, grace: float) -> None:
    shared: dict[str, SharedStudy] = {}
    while not over.wait(min(SWEEP_SECONDS, grace / 4)):
        try:
            for known in connection.storage.get_all_studies():
                name: Any = known.study_name
                if name not in shared:
                    shared[name] = SharedStudy(connection, open_study(connection, name))
                shared[name].sweep(grace)
        except Exception:
            continue  # the database is away; the next round may fare better
