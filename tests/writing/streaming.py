"""A stream over a folder of files, with bad rows, written by deltacheck and killed at will.

Also a process of its own, so that Spark and all can be killed with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import deltacheck
from deltacheck.config import Environment
from deltacheck.delta import commit as door
from deltacheck.delta.commit import Tag
from deltacheck.delta.session import open_session
from deltacheck.names import TableName

ROWS = 6
SCHEMA = "id INT, amount INT, status STRING"


class Crash(Exception):  # noqa: N818
    """What a killed batch ends with."""


@dataclass(frozen=True)
class Source:
    """A folder of files, one batch each.

    Attributes:
        restless: Whether which rows are bad differs each time that a batch is computed.
    """

    folder: Path
    restless: bool = False

    def add(self, *numbers: int) -> None:
        """Add files; each has its own ids, one of them twice, and two bad rows."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for number in numbers:
            ids = [number * 10 + place for place in (0, 1, 2, 3, 4, 4)]
            lines = [
                json.dumps({"id": one, "amount": -1 if place in (1, 5) else 7, "status": "new"})
                for place, one in enumerate(ids)
            ]
            made = self.folder / f".{number:04}.json"
            made.write_text("\n".join(lines), encoding="utf-8")
            # A file appears whole, and files are read in the order of their times.
            os.utime(made, (1_700_000_000 + number, 1_700_000_000 + number))
            made.rename(self.folder / f"{number:04}.json")

    @property
    def rows(self) -> Counter[int]:
        """Each id to the number of rows that have it."""
        files = self.folder.glob("[0-9]*.json")
        return Counter(
            json.loads(line)["id"] for file in files for line in file.read_text().splitlines()
        )

    def start(
        self, session: SparkSession, writer: object, checkpoint: Path | str
    ) -> StreamingQuery:
        """Start a stream that works off what is there, a file in each batch, and ends."""
        reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        rows = reader.json(str(self.folder))
        if self.restless:
            # Each batch has good and bad rows all the same.
            bad = "id % 10 = 1 OR (id % 10 > 1 AND rand() < 0.4)"
            rows = rows.selectExpr("id", f"IF({bad}, -1, 7) AS amount", "status")
        stream = rows.writeStream.foreachBatch(writer)  # type: ignore[arg-type]
        return (
            stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        )


@dataclass
class Trap:
    """Counts the moments of commits; springs at one of them.

    Attributes:
        at: The moment, counted from 0.
        way: ``crash``: the batch ends with an exception; ``stop``: whoever waits for
            ``sprung`` stops the query while the batch goes on; ``kill``: the whole process
            group dies.
    """

    at: int
    way: str
    sprung: threading.Event = field(default_factory=threading.Event)
    _seen: int = 0

    def __call__(self, when: str, table: TableName | None, tag: Tag) -> None:
        number, self._seen = self._seen, self._seen + 1
        if number != self.at:
            return
        self.sprung.set()
        if self.way == "kill":
            os.killpg(0, signal.SIGKILL)
        if self.way == "crash":
            raise Crash


def main(task: dict[str, str]) -> None:
    """Work off a stream, and die in it at a moment.

    Args:
        task: warehouse, java, database, folder, checkpoint, table, route, moment.
    """
    environment = Environment(
        "stream",
        warehouse=Path(task["warehouse"]),
        conf={"spark.master": "local[2]", "spark.driver.extraJavaOptions": task["java"]},
    )
    session = open_session(environment)
    place = environment.warehouse / task["database"] if environment.warehouse else ""
    session.sql(f"CREATE DATABASE IF NOT EXISTS {task['database']} LOCATION '{place}'")
    door.moment = Trap(int(task["moment"]), "kill")
    route = cast(Literal["batch", "rows"], task["route"])
    writer = deltacheck.foreach_batch(task["table"], query="orders", route=route)
    source = Source(Path(task["folder"]), restless=True)
    source.start(session, writer, task["checkpoint"]).awaitTermination()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
