"""The search commands that the client builds: a header in double quotes, then `rg` with quoting.

`rg` in these sandboxes prints the words it was given (see `sandbox.py`), so that a lost or added
quote is seen.
"""

import shlex

from . import expect
from .registry import Cases
from .sandbox import Sandbox

cases = Cases()
CASES = cases.listed


def grep(pattern: str, path: str = '.', include: str = '') -> str:
    only = f' --glob {shlex.quote(include)}' if include else ''
    search = f'rg -li {shlex.quote(pattern)} --sortr=modified{only} {shlex.quote(path)} | head -n 100'
    return f'echo "Below are the execution results of the search command: {search}\n"; {search}'


def glob(pattern: str, path: str = '.') -> str:
    search = f'rg --files {shlex.quote(path)} -g {shlex.quote(pattern)} --sortr=modified | head -n 100'
    return f'echo "Below are the execution results of the glob command: {search}\n"; {search}'


def words_of(sandbox: Sandbox, command: str) -> list[str]:
    content = sandbox.output(command)
    expect.contains(content, 'Below are the execution results of the ')
    expect.lacks(content, 'syntax error', 'unexpected', 'command not found')
    return [line[1:-1] for line in content.splitlines() if line.startswith('<') and line.endswith('>')]


@cases.case()
def patterns_with_quotes_and_operators_reach_the_search(sandbox: Sandbox) -> None:
    for pattern in (
        'plain words',
        'const message = "Hello"',
        "function\\('test'\\)",
        r'x && y \|\| z',
        r'f\(\) \{ return x; \}',
        r'\$variable',
        r'\\n newline',
        r'^\*\.js$',
        'x > y < z',
        '#comment',
    ):
        expect.equal(words_of(sandbox, grep(pattern)), ['-li', pattern, '--sortr=modified', '.'])


@cases.case()
def paths_and_file_patterns_reach_the_search(sandbox: Sandbox) -> None:
    expect.equal(
        words_of(sandbox, grep('x', 'a dir/with spaces', '*.{js,ts}')),
        ['-li', 'x', '--sortr=modified', '--glob', '*.{js,ts}', 'a dir/with spaces'],
    )
    for pattern in ('**/*.py', '**/{*.jsx,*.tsx}', 'file[0-9].txt', 'a?c', 'with space.*'):
        expect.equal(
            words_of(sandbox, glob(pattern, 'some where')), ['--files', 'some where', '-g', pattern, '--sortr=modified']
        )


@cases.case(better='the original expands history inside the header')
def a_pattern_with_an_exclamation_mark_reaches_the_search(sandbox: Sandbox) -> None:
    expect.equal(words_of(sandbox, glob('!skip')), ['--files', '.', '-g', '!skip', '--sortr=modified'])
    expect.equal(words_of(sandbox, grep('!important')), ['-li', '!important', '--sortr=modified', '.'])


@cases.case()
def a_chain_over_several_indented_lines_is_one_command(sandbox: Sandbox) -> None:
    expect.finished(
        sandbox.run(
            '\n        mkdir -p "one dir" "two $unset dir" && \\\n'
            '        echo "costs \\$5 or \\`more\\`" > "one dir/file.txt" && \\\n'
            '        cat "one dir/file.txt" && ls -d two*\n        '
        ),
        "costs $5 or `more`\n'two  dir'",
    )
