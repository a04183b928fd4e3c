"""The laws about imports, checked by reading the sources: they point downward, they stand at the top of a
file, no cycle hides among them, and each package with an unpromised interface has one door.
`python -m tools.layers` prints what breaks a law and where."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# Top to bottom. A module imports from its own row and from the rows below. A name stands for tenfold/NAME.py
# or the folder tenfold/NAME, with a dot for a folder inside of one; "tenfold" is the front door, its
# own __init__.py.
LAYERS = (
    ("__main__", "command", "purple"),
    ("tenfold",),
    ("compat", "backends", "cuda", "explain", "testing", "accelerator", "hub"),
    ("fx",),
    ("overrides",),
    ("generation", "jit", "distributed.fsdp", "distributed.pipelining"),
    ("nn", "optim", "amp", "data", "utils", "func", "exporting", "signal"),
    ("distributed", "distributions"),
    ("compiler", "futures", "masked", "profiler", "quasirandom", "serialize", "sparse", "types"),
    ("autograd", "functional", "random", "linalg", "fft", "special", "library", "return_types", "storage"),
    ("tensor",),
    ("runtime",),
    ("engines",),
    ("mlir", "capi"),
    ("trace",),
    ("ops",),
    ("flat",),
    ("base", "version", "cpu", "multiprocessing", "onnx"),
)
HEIGHT = {unit: -row for row, units in enumerate(LAYERS) for unit in units}

# Which files may import a package whose interface is not promised; for all the others it is out of bounds.
DOORS = {
    "jaxlib": ("engines/xla/door.py", "mlir/stablehlo.py"),
    "torch_mlir": ("mlir/torch_dialect.py",),
    "iree": ("engines/iree.py",),
    "torch": ("capi/",),
    "jax": (),
}

# What a function may import of our own: these load an engine, which `import tenfold` must not do.
LAZY = ("engines", "mlir", "capi")
# Nothing below imports these, so an import in a function of theirs dodges no cycle: it saves start-up.
FRONT = ("tenfold", "command", "compat")
# Imports submodules of the package that asks, which are of its own layer.
OWN_SUBMODULES = "tenfold.base.late"
# What few programs need, and `import tenfold` or `tenfold.nn` would be slower for: a function may import it.
RARE = (
    "tenfold.autograd.checking",
    "tenfold.autograd.function",
    "tenfold.autograd.functional",
    "tenfold.base.notebooks",
    "tenfold.flat.vmap",
    "tenfold.nn.linear_loss",
    "tenfold.nn.parallel",
    "tenfold.nn.sync_batch_norm",
    "tenfold.sparse.embedding",
)
# Loaded by `import tenfold` anyway, so there is nothing to gain by importing them late.
ALWAYS_LOADED = ("numpy",)


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name, and where it is imported."""

    importer: str
    target: str
    path: Path
    line: int
    # "module", "function", or "types" for what loads nothing here: under `if TYPE_CHECKING`, or in a block
    # of late imports.
    scope: str


@dataclass(frozen=True)
class Problem:
    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def check(source_root: Path) -> list[Problem]:
    """Every breach of the laws by the package `source_root/tenfold`."""
    modules = dict(find_modules(source_root))
    imports: list[Import] = []
    problems: list[Problem] = []
    for module, path in modules.items():
        if unit_of(module) not in HEIGHT:
            problems.append(Problem(path, 1, f"{module} is in no layer: give it one in tools/layers.py"))
        reader = ImportReader(module, path, modules)
        reader.visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))
        imports += reader.imports
        problems += reader.problems
    for found in imports:
        problems += judge(found, source_root / "tenfold")
    problems += cycles(imports)
    return sorted(problems, key=lambda problem: (problem.path, problem.line))


def find_modules(source_root: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted((source_root / "tenfold").rglob("*.py")):
        parts = path.relative_to(source_root).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def unit_of(module: str) -> str:
    """The name that stands in LAYERS for a module of ours: "flat" for tenfold.flat.grad."""
    parts = module.split(".")
    inner = ".".join(parts[1:3])
    return inner if inner in HEIGHT else parts[1] if len(parts) > 1 else parts[0]


def is_ours(module: str) -> bool:
    return module.split(".")[0] == "tenfold"


class ImportReader(ast.NodeVisitor):
    """Collects a module's imports with the scope of each."""

    def __init__(self, module: str, path: Path, modules: Mapping[str, Path]):
        self.module, self.path, self.modules = module, path, modules
        self.scope = "module"
        self.imports: list[Import] = []
        self.problems: list[Problem] = []

    def record(self, target: str, node: ast.stmt | ast.expr) -> None:
        self.imports.append(Import(self.module, target, self.path, node.lineno, self.scope))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.record(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self.absolute(node)
        for target in dict.fromkeys(self.named_module(base, alias.name) for alias in node.names):
            self.record(target, node)

    def absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.module.split(".")
        drop = node.level - (self.path.name == "__init__.py")
        return ".".join(package[: len(package) - drop] + ([node.module] if node.module else []))

    def named_module(self, base: str, name: str) -> str:
        """`from tenfold.flat import grad` imports a module, `from tenfold.flat import add` a name of one."""
        return f"{base}.{name}" if f"{base}.{name}" in self.modules else base

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if called in ("import_module", "__import__"):
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                self.record(name.value, node)
            elif unit_of(self.module) not in FRONT and self.module != OWN_SUBMODULES:
                self.problems.append(
                    Problem(self.path, node.lineno, f"{called} of a computed name: write the import out")
                )
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            self.visit_in("types", node.body)
            self.visit_in(self.scope, node.orelse)
        else:
            self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        late = ast.unparse(node.items[0].context_expr).startswith("late_imports(")
        self.visit_in("types" if late else self.scope, ast.iter_child_nodes(node))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        self.visit_in("function", ast.iter_child_nodes(node))

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_in(self, scope: str, nodes: Iterable[ast.AST]) -> None:
        outer, self.scope = self.scope, scope
        for node in nodes:
            self.visit(node)
        self.scope = outer


def judge(found: Import, package: Path) -> Iterator[Problem]:
    """The laws that one import can break by itself."""
    problem = lambda message: Problem(found.path, found.line, message)
    importer, target = unit_of(found.importer), unit_of(found.target)
    if is_ours(found.target):
        if target not in HEIGHT:
            yield problem(f"{found.target} is in no layer: give it one in tools/layers.py")
        elif importer in HEIGHT and HEIGHT[target] > HEIGHT[importer]:
            yield problem(f"{found.importer} imports {found.target}, which lies above it")
        late = target in LAZY or importer in FRONT or found.target in RARE
        if found.scope == "function" and not late:
            yield problem(f"{found.target} imported inside a function: move it to the top of the file")
        return
    root = found.target.split(".")[0]
    if found.scope == "function" and root in ALWAYS_LOADED:
        yield problem(f"{root} imported inside a function: move it to the top of the file")
    if root in DOORS:
        file = found.path.relative_to(package).as_posix()
        if not any(file == door or (door.endswith("/") and file.startswith(door)) for door in DOORS[root]):
            allowed = " and ".join(DOORS[root]) or "nothing in the package"
            yield problem(f"{found.importer} imports {root}: only {allowed} may")


def cycles(imports: Iterable[Import]) -> Iterator[Problem]:
    """One problem for each cycle, first among modules of one unit, then among units of one layer."""
    inner: dict[str, dict[str, Import]] = {}
    outer: dict[str, dict[str, Import]] = {}
    for found in imports:
        if is_ours(found.target) and found.scope != "types":
            units = unit_of(found.importer), unit_of(found.target)
            if units[0] == units[1]:
                inner.setdefault(found.importer, {}).setdefault(found.target, found)
            else:
                outer.setdefault(units[0], {}).setdefault(units[1], found)
    for graph in (inner, outer):
        for cycle in find_cycles(graph):
            closing = graph[cycle[0]][cycle[1]]
            yield Problem(closing.path, closing.line, f"import cycle: {' -> '.join(cycle)}")


def find_cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Cycles met by walking the graph depth first: one for each edge that leads back onto the walk."""
    finished: set[str] = set()
    walk: list[str] = []

    def visit(node: str) -> Iterator[list[str]]:
        if node in walk:
            yield [*walk[walk.index(node) :], node]
        elif node not in finished:
            walk.append(node)
            for following in graph.get(node, ()):
                yield from visit(following)
            finished.add(walk.pop())

    for start in list(graph):
        yield from visit(start)


def main(source_root: Path = Path(__file__).parent.parent / "src") -> int:
    problems = check(source_root)
    for problem in problems:
        print(problem)
    modules = len(list(find_modules(source_root)))
    if not modules:
        print(f"layers: no module of tenfold under {source_root}")
        return 1
    print(f"layers: {modules} modules, {len(problems) or 'no'} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
