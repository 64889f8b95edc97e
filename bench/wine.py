"""Make a Windows Python and its libraries run under Wine 8, which lacks functions that they call.

    python bench/wine.py PYTHON SITE

PYTHON is the folder of python.exe, without python3.dll; SITE that of the libraries. Compiles a
python3.dll that has these functions too, and replaces the names of their DLLs in the libraries.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# Rust calls ProcessPrng for random numbers.
SOURCE = """
#include <windows.h>
#include <ntsecapi.h>
BOOL ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, size); }
"""
MINGW = "x86_64-w64-mingw32"
REPLACED = (b"bcryptprimitives.dll", b"api-ms-win-crt-math-l1-1-0.dll")
# NumPy and SciPy call the complex functions of C. A long double of Windows is a double.
COMPLEX = re.compile(r"(c(?:abs|arg|atan|cosh?|exp|imag|log|pow|real|sinh?|sqrt|tanh?)f?)l?")


def exported(library: Path) -> set[str]:
    """Return the names of the functions in an import library."""
    listed = subprocess.run(
        [f"{MINGW}-nm", library], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return set(re.findall(r" __imp_(\w+)", listed))


def compile_library(folder: Path) -> None:
    """Compile python3.dll: functions of python314.dll, ucrtbase.dll and mingw."""
    lines = ["EXPORTS", "ProcessPrng"]
    lines += [f"{name} = python314.{name}" for name in exported(folder / "libs/python3.lib")]
    for name in exported(Path(f"/usr/{MINGW}/lib/libucrtbase.a")):
        compiled = COMPLEX.fullmatch(name)
        lines.append(f"{name} = {compiled[1] if compiled else f'ucrtbase.{name}'}")
    (folder / "python3.def").write_text("\n".join(lines))
    (folder / "python3.c").write_text(SOURCE)
    command = f"{MINGW}-gcc -shared -static -o python3.dll python3.c python3.def -ladvapi32"
    subprocess.run(command.split(), cwd=folder, check=True)


def main() -> None:
    """Prepare the folders named on the command line."""
    python, site = map(Path, sys.argv[1:])
    # It ends the process. Python does without it.
    (python / "lib/_wmi.pyd").unlink(missing_ok=True)
    compile_library(python)
    for path in site.rglob("*"):
        if path.suffix in {".pyd", ".dll"}:
            content = path.read_bytes()
            for name in REPLACED:
                content = content.replace(name, b"python3.dll".ljust(len(name), b"\0"))
            path.write_bytes(content)


if __name__ == "__main__":
    main()
