"""The walk of a problem through the best strategy: the files that read it, and the calls that hand it on.

Usage: python3 benches/walk.py [START]

START is the file where the walk begins, `search/best.rs` by default. A call counts if it hands a problem, or a search
under way with its problem, to a function of another file of `src`; tests do not count. Calls are found by names, imports
and `impl` blocks, so a method of a value counts only if no other file has one of its name.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src"
FUNCTION = re.compile(r"\bfn (\w+)(?:<[^>(]*>)?\(([^{;]*?)\)\s*(?:->|\{|where)", re.S)
TAKES = re.compile(r"\b(?:problem: &(?:'\w+ )?Problem|search: &mut Search)\b")
CALL = re.compile(r"(\.)?\b(?:(\w+)::)?(\w+)\(\s*(?:(?:self|search)\.)?(?:&mut |&)?(?:problem|search)\b(?!\s*\.)")
BLOCK = re.compile(r"^impl(?:<[^{]*?>)? (?:[\w:]+(?:<[^{]*?>)? for )?(\w+)", re.M)


def text_of(path):
    text = path.read_text()
    end = text.find("#[cfg(test)]\nmod tests")
    text = text if end < 0 else text[:end]
    return re.sub(r"//[^\n]*", "", text)


def main():
    start = sys.argv[1] if len(sys.argv) > 1 else "search/best.rs"
    paths = [p for p in ROOT.rglob("*.rs") if not {"tests", "tests.rs", "cli"} & set(p.relative_to(ROOT).parts)]
    texts = {str(p.relative_to(ROOT)): text_of(p) for p in paths}
    if start not in texts:
        sys.exit(f"walk.py: src/{start} is no file of the library; name one from src, such as search/best.rs")
    # By name: the files with such a function, and the names by which a path reaches it there.
    functions = collections.defaultdict(list)
    for file, text in texts.items():
        stem = pathlib.Path(file).stem
        module = pathlib.Path(file).parent.name if stem == "mod" else stem
        for match in FUNCTION.finditer(text):
            if TAKES.search(match[2]):
                blocks = [b[1] for b in BLOCK.finditer(text, 0, match.start())]
                owner = blocks[-1] if blocks and re.search(r"\n    [^\n]*$", text[: match.start()]) else None
                functions[match[1]].append((file, owner, module))

    def callees(file):
        text = texts[file]
        imports = " ".join(re.findall(r"\buse [^;]*;", text))
        own = set(re.findall(r"\bfn (\w+)", text))
        for dot, prefix, name in (m.groups() for m in CALL.finditer(text)):
            for callee, owner, module in functions.get(name, []):
                if callee == file:
                    continue
                if prefix:
                    is_meant = prefix == owner or (owner is None and prefix == module)
                elif dot:
                    is_meant = owner is not None and len(functions[name]) == 1
                else:
                    is_meant = owner is None and name not in own and re.search(rf"\b{name}\b", imports)
                if is_meant:
                    yield callee, name

    walk, found, todo = set(), {start}, [start]
    while todo:
        file = todo.pop()
        for callee, name in callees(file):
            walk.add((file, callee, name))
            if callee not in found:
                found.add(callee)
                todo.append(callee)
    for file, callee, name in sorted(walk):
        print(f"{file} -> {callee}: {name}")
    print(f"{len(found)} files, {len(walk)} calls between them")


main()
