"""`cwnd new-controller`: what it writes and refuses. `make new-controller` compiles that."""

import re
import shutil
from pathlib import Path

import pytest

from cwnd._cli import run

ROOT = Path(__file__).parents[2]
CODE = Path("crates/cwnd/src")

pytestmark = pytest.mark.skipif(shutil.which("rustfmt") is None, reason="it needs rustfmt")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """The source of the laws and of their registry, as the working directory."""
    shutil.copytree(ROOT / CODE, tmp_path / CODE)
    shutil.copy(ROOT / "rustfmt.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_text() for path in files}


def refused(capsys, *arguments: str) -> str:
    """Return the one line on standard error."""
    assert run(["new-controller", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(("kind", "last"), [("window", "Cubic"), ("rate", "Tfrc")])
def test_it_writes_the_law_and_its_place_in_the_registry(checkout, capsys, kind, last):
    old = contents(checkout)
    assert run(["new-controller", "tcp_lp", "--kind", kind]) == 0
    new = contents(checkout)
    names = ["laws/tcp_lp.rs", "laws/mod.rs", "laws/any.rs", "registry.rs", f"registry/{kind}.rs"]
    changed = [str(CODE / name) for name in names]
    assert {path for path in new if new[path] != old.get(path)} == set(changed)
    steps = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(f"`{path}`" in steps for path in changed[1:])
    told = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in told[1:6]] == changed
    assert "  cargo test -p cwnd" in told

    law, modules, variants, registry, entries = (new[path] for path in changed)
    assert "pub struct TcpLp" in law
    assert f"impl {kind.title()}Law for TcpLp" in law
    assert "$" not in law + entries
    assert "pub mod cubic;\npub mod tcp_lp;\npub(crate) mod text;" in modules
    assert "pub use cubic::Cubic;\npub use tcp_lp::TcpLp;\npub use texts::*;" in modules
    assert f"        {last},\n        TcpLp,\n    }}\n" in variants
    assert re.search(rf"^    {kind}::TCP_LP,\n(?!    {kind}::)", registry, re.MULTILINE)
    assert 'name: "tcp_lp"' in entries
    # All words that were there still are, in their order.
    for path in changed[1:]:
        words = iter(re.findall(r"\w+", new[path]))
        assert all(word in words for word in re.findall(r"\w+", old[path])), path


def without_whole_controllers(checkout: Path) -> None:
    """Remove the whole controllers and what names them."""
    shutil.rmtree(checkout / CODE / "controllers")
    (checkout / CODE / "registry/whole.rs").unlink()
    for name, pattern in [
        ("lib.rs", r"pub mod controllers;\n"),
        ("registry.rs", r"mod whole;\n|    whole::\w+,\n"),
    ]:
        path = checkout / CODE / name
        path.write_text(re.sub(pattern, "", path.read_text()))


def test_the_first_whole_controller_and_a_second_one(checkout, capsys):
    without_whole_controllers(checkout)
    old = contents(checkout)
    for name in ("tcp_lp", "hybla"):
        assert run(["new-controller", name, "--kind", "whole"]) == 0
    new = contents(checkout)
    names = ["controllers/mod.rs", "registry.rs", "registry/whole.rs"]
    modules, registry, entries = (new[str(CODE / name)] for name in names)
    controllers = [str(CODE / "controllers" / f"{name}.rs") for name in ("tcp_lp", "hybla")]
    changed = {path for path in new if new[path] != old.get(path)}
    assert changed == {*(str(CODE / name) for name in (*names, "lib.rs")), *controllers}
    assert capsys.readouterr().out.splitlines()[-5].strip() == str(CODE / "registry/whole.rs")
    assert "impl Controller for TcpLp" in new[controllers[0]]
    assert (
        "pub mod hybla;\npub mod tcp_lp;\n\npub use hybla::Hybla;\npub use tcp_lp::TcpLp;\n"
        in modules
    )
    assert "mod controller;\npub mod controllers;\n" in new[str(CODE / "lib.rs")]
    assert "mod whole;\nmod window;\n" in registry
    assert "    rate::TFRC,\n    whole::TCP_LP,\n    whole::HYBLA,\n];" in registry
    assert "use crate::controllers::Hybla;\nuse crate::controllers::TcpLp;\n" in entries
    assert entries.index('name: "tcp_lp"') < entries.index('name: "hybla"')
    assert "$" not in "".join(new[path] for path in changed)
    capsys.readouterr()
    assert "exists already" in refused(capsys, "hybla", "--kind", "whole")


def test_a_whole_controller_beside_the_others(checkout):
    old = contents(checkout)
    assert run(["new-controller", "tcp_lp", "--kind", "whole"]) == 0
    new = contents(checkout)
    names = ["controllers/mod.rs", "registry.rs", "registry/whole.rs", "controllers/tcp_lp.rs"]
    assert {path for path in new if new[path] != old.get(path)} == {
        str(CODE / name) for name in names
    }
    modules, registry, entries, _ = (new[str(CODE / name)] for name in names)
    assert "pub mod tcp_lp;\n" in modules
    assert "pub use tcp_lp::TcpLp;\n" in modules
    assert "    whole::TCP_LP,\n];" in registry
    assert "use crate::controllers::TcpLp;\n" in entries


def test_a_second_one_finds_its_place(checkout, capsys):
    for name in ("mine", "other"):
        assert run(["new-controller", name]) == 0
    variants = (checkout / CODE / "laws/any.rs").read_text()
    assert "        Mine,\n        Other,\n    }\n" in variants
    capsys.readouterr()
    assert "exists already" in refused(capsys, "mine")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("aimd", "crates/cwnd/src/laws/aimd.law exists already"),
        ("any", "crates/cwnd/src/laws/any.rs exists already"),
        ("daimd", "exists already"),
        ("gen", "'gen' is a keyword of Rust"),
        ("Aimd2", "'Aimd2' is not a name of lower-case letters and digits"),
        ("my-law", "such as ledbat or tcp_lp"),
        ("../aimd", "'../aimd' is not a name"),
        ("2fast", "'2fast' is not a name"),
        ("", "'' is not a name"),
        ("option", "Option has another meaning"),
        ("any_law", "AnyLaw has another meaning"),
        ("pacing", "PACING has another meaning"),
        ("alloc", "alloc has another meaning"),
    ],
)
def test_names_that_cannot_be(checkout, capsys, name, why):
    old = contents(checkout)
    assert why in refused(capsys, name)
    assert contents(checkout) == old


def test_outside_of_a_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert f"{tmp_path} is in no checkout of cwnd" in refused(capsys, "mine")
    assert list(tmp_path.iterdir()) == []


def test_below_the_root_of_a_checkout(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout / CODE / "laws")
    assert run(["new-controller", "mine"]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == ["  mine.rs", "  mod.rs"]
    assert (checkout / CODE / "laws/mine.rs").exists()


@pytest.mark.parametrize(
    ("file", "anchor", "missing"),
    [
        ("laws/any.rs", "    AnyLaw {", "`Mine,`"),
        ("laws/mod.rs", "pub mod ", "`pub mod mine;`"),
        ("registry.rs", "    window::", "`window::MINE,`"),
        ("registry/window.rs", "use crate::laws::", "`use crate::laws::Mine;`"),
    ],
)
def test_a_checkout_without_a_place_is_left_alone(checkout, capsys, file, anchor, missing):
    path = checkout / CODE / file
    path.write_text(path.read_text().replace(anchor, "// "))
    old = contents(checkout)
    assert f"{CODE / file} has no place for {missing}" in refused(capsys, "mine")
    assert contents(checkout) == old


def test_a_checkout_that_is_not_rust_is_left_alone(checkout, capsys):
    path = checkout / CODE / "registry.rs"
    path.write_text(path.read_text() + "fn {\n")
    old = contents(checkout)
    assert f"{CODE / 'registry.rs'} is not Rust: error: " in refused(capsys, "mine")
    assert contents(checkout) == old


@pytest.mark.parametrize("kind", ["window", "whole"])
def test_nothing_is_half_written(checkout, capsys, monkeypatch, kind):
    without_whole_controllers(checkout)
    old = contents(checkout)
    write = Path.write_text

    def write_or_fail(path, *arguments, **named):
        if "registry" in path.name:
            raise OSError(28, "No space left on device", str(path))
        return write(path, *arguments, **named)

    monkeypatch.setattr(Path, "write_text", write_or_fail)
    assert "No space left on device" in refused(capsys, "mine", "--kind", kind)
    assert contents(checkout) == old
    assert not (checkout / CODE / "controllers").exists()


def test_without_rustfmt(checkout, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert "rustfmt is not installed" in refused(capsys, "mine")
