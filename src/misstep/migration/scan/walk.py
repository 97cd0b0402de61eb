"""Every call of a file, and what it calls: names followed through imports, values through assignments, in one pass.

    calls = read_calls(source)
    calls[0].name      'torch.Tensor.view'       whatever the file calls it
    calls[0].group     framework · library · python · own · unknown

Nothing is executed. Functions are walked in the order they are written, classes first by their `__init__`, so that a
method knows what `self.layer` is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from misstep.diagnosis.lint.source import FORWARD, Function, Source
from misstep.migration.scan.kinds import (
    BUILTINS,
    FRAMEWORKS,
    NETWORK,
    OWN,
    PLAIN_METHODS,
    PYTHON,
    TENSOR,
    UNKNOWN,
    Kind,
    annotated,
    attribute,
    joined,
    literal,
    returned,
    usual,
)
from misstep.migration.scan.reading import (
    MODULE_METHODS,
    Called,
    Reading,
    computed,
    defaults_of,
    is_file,
    of_module,
)

Env = dict[str, Kind]
_ITERATE_FIRST = frozenset({"builtins.list", "builtins.tuple", "builtins.reversed", "builtins.sorted", "builtins.iter"})


def read_calls(source: Source, methods: frozenset[str], framework: str = "torch") -> Reading:
    """`methods` are the names of the framework's tensor methods."""
    return _Walk(source, methods, framework).go()


class _Walk:
    def __init__(self, source: Source, methods: frozenset[str], framework: str) -> None:
        self.source, self.methods, self.framework = source, methods, framework
        self.found = Reading()
        self.attributes: dict[str, Env] = {}
        """Class → what its instances hold."""
        self.owner = ""
        self.globals: Env = {}

    def go(self) -> Reading:
        tree = self.source.tree
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.globals[node.name] = Kind("own", node.name)
        self.block(tree.body, self.globals)
        return self.found

    # ── statements ───────────────────────────────────────────────────────────────────────────────────────────────────

    def block(self, body: Iterable[ast.stmt], env: Env) -> None:
        for statement in body:
            self.statement(statement, env)

    def statement(self, node: ast.stmt, env: Env) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                env.setdefault(node.name, OWN)
                self.function(node, env)
            case ast.ClassDef():
                self.class_(node, env)
            case ast.Assign():
                kind = self.expression(node.value, env)
                for target in node.targets:
                    self.bind(target, kind, node.value, env)
            case ast.AnnAssign():
                self.expression(node.annotation, env)
                kind = self.expression(node.value, env) if node.value is not None else UNKNOWN
                self.bind(node.target, annotated(node.annotation) or kind, node.value, env)
            case ast.AugAssign():
                kind = joined(self.expression(node.target, env), self.expression(node.value, env))
                self.bind(node.target, kind, None, env)
            case ast.For() | ast.AsyncFor():
                self.bind(node.target, self.element(node.iter, env), None, env, node.iter)
                self.block(node.body, env)
                self.block(node.orelse, env)
            case ast.If() | ast.While():
                if self.expression(node.test, env) == TENSOR:
                    self.found.tensors.append((node, node.test))
                self.block(node.body, env)
                self.block(node.orelse, env)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    kind = self.expression(item.context_expr, env)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, kind, None, env)
                self.block(node.body, env)
            case ast.Try():
                self.block(node.body, env)
                for handler in node.handlers:
                    if handler.name:
                        env[handler.name] = PYTHON
                    self.block(handler.body, env)
                self.block(node.orelse, env)
                self.block(node.finalbody, env)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expression(child, env)
                    elif isinstance(child, ast.stmt):
                        self.statement(child, env)

    def class_(self, node: ast.ClassDef, env: Env) -> None:
        for one in (*node.bases, *node.decorator_list, *(keyword.value for keyword in node.keywords)):
            self.expression(one, env)
        before, self.owner = self.owner, node.name
        held = self.attributes.setdefault(node.name, {})
        held.update({item.name: OWN for item in node.body if isinstance(item, Function)})
        ordered = sorted(node.body, key=lambda item: getattr(item, "name", "") != "__init__")
        for item in ordered:
            self.statement(item, env)
        self.owner = before

    def function(self, node: Function, outer: Env) -> None:
        env = dict(outer)
        self.annotations(node, outer)
        network = self.source.networks.get(self.owner) is not None
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        defaults = defaults_of(node)
        for arg in every:
            told = annotated(arg.annotation)
            if told is None and (default := defaults.get(arg.arg)) is not None:
                told = literal(default)
            if told is None and network and node.name in FORWARD:
                told = TENSOR
            env[arg.arg] = told or usual(arg.arg)
        if self.owner and every and every[0].arg == "self":
            env["self"] = Kind("own", "self")
        for star in (node.args.vararg, node.args.kwarg):
            if star is not None:
                env[star.arg] = PYTHON
        self.block(node.body, env)

    def annotations(self, node: Function, env: Env) -> None:
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        promised = (*(arg.annotation for arg in every), node.returns)
        for one in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults, *promised):
            if one is not None:
                self.expression(one, env)

    def bind(
        self, target: ast.expr, kind: Kind, value: ast.expr | None, env: Env, iterated: ast.expr | None = None
    ) -> None:
        if isinstance(target, ast.Name):
            env[target.id] = kind
            self.found.kinds[target] = kind
        elif isinstance(target, ast.Attribute):
            base = self.expression(target.value, env)
            if base == Kind("own", "self") and self.owner:
                held = self.attributes[self.owner]
                held[target.attr] = joined(kind, held.get(target.attr, UNKNOWN))
        elif isinstance(target, ast.Tuple | ast.List):
            parts: list[Kind] = [kind if kind.what in ("tensor", "python") else UNKNOWN] * len(target.elts)
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                parts = [self.found.kind(one) for one in value.elts]
            elif iterated is not None:
                parts = self.zipped(iterated, len(target.elts), env) or parts
            for one, part in zip(target.elts, parts):
                self.bind(one, part, None, env)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, kind, None, env)
        elif isinstance(target, ast.Subscript):
            self.expression(target, env)

    def zipped(self, iterated: ast.expr, count: int, env: Env) -> list[Kind]:
        """`for i, (a, b) in enumerate(zip(x, y))`: what each name becomes."""
        if not isinstance(iterated, ast.Call) or not isinstance(iterated.func, ast.Name):
            return []
        if iterated.func.id == "enumerate" and count == 2 and iterated.args:
            return [Kind("python", "int"), self.element(iterated.args[0], env)]
        if iterated.func.id == "zip" and count == len(iterated.args):
            return [self.element(one, env) for one in iterated.args]
        return []

    def element(self, node: ast.expr, env: Env) -> Kind:
        """What iterating over an expression gives."""
        kind = self.expression(node, env)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id in ("enumerate", "zip"):
                return PYTHON
            if node.func.id in ("reversed", "list", "tuple", "sorted"):
                return self.element(node.args[0], env)
            if node.func.id == "range":
                return Kind("python", "int")
        if kind.what == "layer" or kind.what == "network":
            return NETWORK
        if kind.what == "tensor" or kind.name.endswith("DataLoader"):
            return TENSOR
        return UNKNOWN if kind.what in ("python", "object") else kind if kind.what == "own" else UNKNOWN

    # ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────────

    def expression(self, node: ast.expr, env: Env) -> Kind:
        known = self.found.kinds.get(node)
        if known is not None and not isinstance(node, ast.Name):
            return known
        kind = self._expression(node, env)
        self.found.kinds[node] = kind
        return kind

    def _expression(self, node: ast.expr, env: Env) -> Kind:
        match node:
            case ast.Name():
                return self.name(node.id, env)
            case ast.Attribute():
                return self.attribute(node, env)
            case ast.Call():
                return self.call(node, env)
            case ast.BinOp():
                return computed(self.expression(node.left, env), self.expression(node.right, env))
            case ast.UnaryOp():
                kind = self.expression(node.operand, env)
                return PYTHON if isinstance(node.op, ast.Not) and kind != TENSOR else kind
            case ast.Compare():
                sides = [self.expression(one, env) for one in (node.left, *node.comparators)]
                identity = all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
                return TENSOR if TENSOR in sides and not identity else PYTHON
            case ast.BoolOp():
                parts = [self.expression(one, env) for one in node.values]
                return TENSOR if TENSOR in parts else parts[-1]
            case ast.IfExp():
                if self.expression(node.test, env) == TENSOR:
                    self.found.tensors.append((ast.Expr(node, lineno=node.lineno), node.test))
                return joined(self.expression(node.body, env), self.expression(node.orelse, env))
            case ast.Subscript():
                return self.subscript(node, env)
            case ast.NamedExpr():
                kind = self.expression(node.value, env)
                self.bind(node.target, kind, node.value, env)
                return kind
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.comprehension(node, env)
            case ast.Lambda():
                inner = {**env, **{arg.arg: UNKNOWN for arg in node.args.args}}
                self.expression(node.body, inner)
                return OWN
            case ast.Starred() | ast.Await():
                return self.expression(node.value, env)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.expression(child, env)
        return literal(node) or (UNKNOWN if isinstance(node, ast.Constant) else PYTHON)

    def name(self, word: str, env: Env) -> Kind:
        if word in env:
            return env[word]
        if word in self.source.imports:
            return self.imported(self.source.imports[word])
        return Kind("name", f"builtins.{word}") if word in BUILTINS else UNKNOWN

    def imported(self, dotted: str) -> Kind:
        if dotted.partition(".")[0] in FRAMEWORKS:
            return Kind("name", dotted)
        if dotted.startswith(".") or is_file(self.source.path, dotted.partition(".")[0]):
            return Kind("own", dotted)
        return Kind("name", dotted)

    def attribute(self, node: ast.Attribute, env: Env) -> Kind:
        base = self.expression(node.value, env)
        if base == Kind("own", "self") and self.owner:
            return self.attributes[self.owner].get(node.attr, Kind("own", f"self.{node.attr}"))
        if base == TENSOR:
            name = f"{self.framework}.Tensor.{node.attr}"
            if node.attr not in ("shape", "dtype", "device", "grad", "ndim", "requires_grad"):
                self.found.calls.append(Called(node, name, "framework", node.value))
        if base.what == "own":
            return Kind("own", node.attr)
        return attribute(base, node.attr)

    def subscript(self, node: ast.Subscript, env: Env) -> Kind:
        base = self.expression(node.value, env)
        self.expression(node.slice, env)
        if base.what in ("tensor", "unknown"):
            return base
        if base.what in ("layer", "network"):
            return NETWORK
        return Kind("own", "item") if base.what == "own" else UNKNOWN

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Env) -> Kind:
        inner = dict(env)
        for one in node.generators:
            self.bind(one.target, self.element(one.iter, inner), None, inner, one.iter)
            for condition in one.ifs:
                self.expression(condition, inner)
        if isinstance(node, ast.DictComp):
            self.expression(node.key, inner)
            self.expression(node.value, inner)
            return Kind("python", "dict")
        return TENSOR if self.expression(node.elt, inner) == TENSOR else Kind("python", "list")

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, node: ast.Call, env: Env) -> Kind:
        function = node.func
        if isinstance(function, ast.Attribute):
            base = self.expression(function.value, env)
            called, kind = self.method(node, function, base)
        else:
            base = self.expression(function, env)
            called, kind = self.plain(node, base)
        for one in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.expression(one, env)
        self.found.calls.append(called)
        return kind

    def plain(self, node: ast.Call, base: Kind) -> tuple[Called, Kind]:
        if base.what == "name":
            return self.named(node, base.name)
        if base.what == "own":
            made = base.name in self.source.networks or self.source.find_network(base.name) is not None
            return Called(node, base.name, "own"), NETWORK if made else UNKNOWN
        if base.what in ("layer", "network"):
            return Called(node, base.name, "own"), TENSOR
        if base.what in ("object", "python", "optimizer"):
            return Called(node, base.name or "python", "library" if base.what == "object" else "python"), UNKNOWN
        return Called(node, "", "unknown", sure=False), UNKNOWN

    def named(self, node: ast.Call, name: str) -> tuple[Called, Kind]:
        head = name.partition(".")[0]
        if head in FRAMEWORKS:
            return Called(node, name, "framework"), returned(name)
        if head == "builtins":
            word = name.rpartition(".")[2]
            if word == "super":
                return Called(node, name, "python"), Kind("own", "super")
            plain = Kind("python", word) if word in ("int", "float", "str", "bool", "list", "tuple", "dict") else PYTHON
            return Called(node, name, "python"), plain if word not in ("getattr", "next") else UNKNOWN
        plain = (
            PYTHON if head in ("numpy", "math", "random", "os", "copy", "itertools", "time") else Kind("object", name)
        )
        if head == "einops":
            plain = TENSOR
        return Called(node, name, "python" if plain == PYTHON else "library"), plain

    def method(self, node: ast.Call, function: ast.Attribute, base: Kind) -> tuple[Called, Kind]:
        word, receiver = function.attr, function.value
        if base.what == "name":
            return self.named(node, f"{base.name}.{word}")
        if base == TENSOR:
            name = f"{self.framework}.Tensor.{word}"
            return Called(node, name, "framework", receiver), returned(name)
        if base.what in ("layer", "network"):
            return Called(node, f"{self.module}.{word}", "framework", receiver), of_module(word)
        if base.what in ("optimizer", "schedule"):
            home = "torch.optim.Optimizer" if base.what == "optimizer" else "torch.optim.lr_scheduler.LRScheduler"
            return Called(node, f"{home}.{word}", "framework", receiver), PYTHON
        if base.what == "own":
            return self.own_method(node, function, base)
        if base.what == "python":
            return Called(node, f"{base.name or 'python'}.{word}", "python", receiver), PYTHON
        if base.what == "object":
            return Called(node, f"{base.name}.{word}", "library", receiver), UNKNOWN
        if word in self.methods and word not in PLAIN_METHODS:
            name = f"{self.framework}.Tensor.{word}"
            return Called(node, name, "framework", receiver, sure=False), returned(name)
        return Called(node, word, "unknown", receiver, sure=False), UNKNOWN

    def own_method(self, node: ast.Call, function: ast.Attribute, base: Kind) -> tuple[Called, Kind]:
        """A method of the project's own: of self, of an ancestor, or a layer the object holds."""
        held = self.attributes.get(self.owner, {}).get(function.attr) if base.name == "self" else None
        if held is not None and held.what in ("layer", "network"):
            return Called(node, held.name or function.attr, "own", function.value), TENSOR
        network = self.source.networks.get(self.owner) is not None
        if network and base.name in ("self", "super") and held is None and function.attr in MODULE_METHODS:
            return Called(node, f"{self.module}.{function.attr}", "framework", function.value), of_module(function.attr)
        inside = network and base.name == "self" and held != OWN
        return Called(node, f"{base.name}.{function.attr}", "own", function.value), TENSOR if inside else UNKNOWN

    @property
    def module(self) -> str:
        return "torch.nn.Module" if self.framework == "torch" else "mindspore.nn.Cell"
