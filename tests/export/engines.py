"""Engines of SQL in which the tests run queries: SQLite, DuckDB and PostgreSQL, each with a
database of its own."""

import glob
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import time

import numpy as np
import pytest

ENGINES = ["sqlite", "duckdb", "postgresql"]
# Where systems keep a server of PostgreSQL that is not on the path.
SERVERS = "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*"
# The types of columns by those of Python.
TYPES = {float: "DOUBLE PRECISION", int: "BIGINT", bool: "BOOLEAN", str: "TEXT"}


def named(name):
    """Write a name in quotes, as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


class Engine:
    """A connection to an engine. execute : a function of a query that returns its cursor; mark :
    that of a parameter."""

    def __init__(self, name, connection, mark, fails):
        self.name, self.connection, self.mark, self.fails = name, connection, mark, fails

    def execute(self, query, *parameters):
        cursor = self.connection.cursor()
        cursor.execute(query, *parameters)
        return cursor

    def create(self, columns, kinds=None, table='"data"'):
        """Make a table of {name: cells}; kinds : {name: type of SQL}, where it is not that of the
        first cell that is there."""
        types = {
            name: TYPES[type(next((c for c in cells if c is not None), 0.0))]
            for name, cells in columns.items()
        }
        types |= kinds or {}
        self.execute(f"DROP TABLE IF EXISTS {table}")
        self.execute(
            f"CREATE TABLE {table} "
            f"({', '.join(f'{named(name)} {kind}' for name, kind in types.items())})"
        )
        marks = ", ".join([self.mark] * len(columns))
        for row in zip(*columns.values(), strict=True):
            self.execute(f"INSERT INTO {table} VALUES ({marks})", row)

    def select(self, code):
        """Return (the names of the columns of a query, its rows)."""
        cursor = self.execute(code)
        return [each[0] for each in cursor.description], cursor.fetchall()

    def types(self, code):
        """Return the types of the results of a query."""
        if self.name == "sqlite":
            names = [each[0] for each in self.execute(code).description]
            asked = ", ".join(f"typeof({named(name)})" for name in names)
            return list(self.execute(f"SELECT {asked} FROM ({code}) LIMIT 1").fetchone())
        if self.name == "duckdb":
            return [str(kind) for kind in self.connection.sql(code).types]
        return [each.type_display for each in self.execute(code).description]


def open_engine(name):
    """Yield an engine; skip the test where it is not installed."""
    if name == "sqlite":
        connection = sqlite3.connect(":memory:", isolation_level=None)
        for function in ("SQRT", "EXP", "COS", "SIN", "TANH"):  # not all builds have them
            connection.create_function(
                function, 1, _strict(getattr(np, function.lower())), deterministic=True
            )
        yield Engine(name, connection, "?", sqlite3.Error)
        connection.close()
    elif name == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        yield Engine(name, connection, "?", duckdb.Error)
        connection.close()
    else:
        yield from _open_postgresql()


def _strict(function):
    """Return a function of NumPy as one of SQL, NULL for NULL."""
    return lambda x: None if x is None else float(function(x))


def _open_postgresql():
    """Start a server of PostgreSQL in a folder of its own, and yield a connection to it."""
    psycopg = pytest.importorskip("psycopg", exc_type=ImportError)
    folders = [os.path.dirname(found)] if (found := shutil.which("initdb")) else []
    folders += [
        folder for pattern in SERVERS for folder in sorted(glob.glob(pattern), reverse=True)
    ]
    programs = next((folder for folder in folders if os.path.exists(f"{folder}/postgres")), None)
    if programs is None:
        pytest.skip("no server of PostgreSQL is installed")
    user = pwd.getpwuid(os.geteuid())
    if user.pw_uid == 0:  # the server refuses to run as root
        user = pwd.getpwnam(
            "postgres" if any(each.pw_name == "postgres" for each in pwd.getpwall()) else "nobody"
        )
    as_user = (
        {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        os.chown(folder, user.pw_uid, user.pw_gid)
        quiet = {
            "cwd": folder,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            **as_user,
        }
        make = [
            f"{programs}/initdb",
            "-D",
            f"{folder}/data",
            "-A",
            "trust",
            "-U",
            "tests",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ]
        subprocess.run(make, check=True, **quiet)
        options = [
            "-k",
            folder,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "jit=off",
            "-c",
            "max_connections=5",
        ]
        server = subprocess.Popen(
            [f"{programs}/postgres", "-D", f"{folder}/data", *options], **quiet
        )
        try:
            connection = _connected(psycopg, server, folder)
            yield Engine("postgresql", connection, "%s", psycopg.Error)
            connection.close()
        finally:
            server.terminate()
            server.wait()


def _connected(psycopg, server, folder):
    """Return a connection to a server as soon as it answers."""
    for _ in range(300):
        try:
            return psycopg.connect(host=folder, dbname="postgres", user="tests", autocommit=True)
        except psycopg.OperationalError:
            if server.poll() is not None:
                raise
            time.sleep(0.1)
    raise TimeoutError("the server of PostgreSQL does not answer")
