"""What a command's output looks like: rendered as on a screen, cut when it is long."""

import re

from . import expect
from .registry import Cases
from .sandbox import Sandbox

cases = Cases()
CASES = cases.listed


def lines(first: int, last: int) -> str:
    return '\n'.join(f'Line {n}' for n in range(first, last + 1))


@cases.case()
def long_output_keeps_its_beginning_and_its_end(sandbox: Sandbox) -> None:
    observation = sandbox.run('for i in $(seq 1 5000); do echo "Line $i"; done', timeout=60)
    expect.finished(observation, expect.shortened(lines(1, 5000)))
    expect.equal(len(observation.content), expect.LONGEST + len(expect.CUT))


@cases.case()
def output_at_the_limit_is_not_cut(sandbox: Sandbox) -> None:
    text = 'x' * 499 + '\n'
    command = f'for i in $(seq 60); do echo {text.strip()}; done'
    expect.finished(sandbox.run(command, timeout=30), (text * 60).strip())


@cases.case()
def a_hidden_command_gives_all_of_its_output(sandbox: Sandbox) -> None:
    observation = sandbox.run('for i in $(seq 1 5000); do echo "Line $i"; done', hidden=True, timeout=60)
    expect.finished(observation, lines(1, 5000))
    expect.equal(observation.hidden, True)


@cases.case()
def output_beyond_the_scrollback_keeps_the_last_lines(sandbox: Sandbox) -> None:
    observation = sandbox.run('for i in $(seq 1 50000); do echo "Line $i"; done', timeout=60)
    prefix = observation.metadata.prefix
    told = re.fullmatch(
        r'\[Previous command outputs are truncated\. Showing the last (\d+) lines of the output below\.\]\n', prefix
    )
    assert told, f'the prefix is {prefix!r}'
    kept = int(told.group(1))
    assert 10_001 <= kept <= 11_360, f'{kept} lines were kept'
    expect.contains(observation.content, 'Line 40000', 'Line 50000')
    expect.equal(observation.exit_code, 0)
    last = observation.content.rsplit(expect.CUT, 1)[-1]
    expect.equal(last, lines(40_000, 50_000)[-expect.LONGEST // 2 :])


@cases.case()
def a_listing_of_ten_thousand_files_comes_through(sandbox: Sandbox) -> None:
    for number in range(1, 101):
        folder = sandbox.directory / f'folder_{number:03}'
        folder.mkdir()
        for name in range(1, 101):
            (folder / f'file_{name:03}.txt').touch()
    content = sandbox.output('ls -R', timeout=60, hidden=True)
    expect.contains(content, './folder_001:', './folder_100:', 'file_001.txt', 'file_100.txt')
    expect.equal(len(re.findall(r'file_\d{3}\.txt', content)), 10_000)


@cases.case()
def colours_and_cursor_moves_are_resolved(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run(r"printf '\033[1;31mred\033[0m plain\n'"), 'red plain')
    expect.finished(sandbox.run(r"printf '10%%\r50%%\r100%%\n'"), '100%')
    expect.finished(sandbox.run(r"printf 'abcdef\r12\n'"), '12cdef')
    expect.finished(sandbox.run(r"printf 'wrong\b\b\b\b\bright\n'"), 'right')
    expect.finished(sandbox.run(r"printf 'gone\r\033[Kkept\n'"), 'kept')
    expect.finished(sandbox.run(r"printf 'a\tb\n'"), 'a       b')


@cases.case()
def space_around_the_output_is_removed(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run(r"printf '\n\n   lead\n   next   \n\n\n'"), 'lead\n   next')
    expect.finished(sandbox.run("printf 'no newline'"), 'no newline')


@cases.case()
def letters_of_any_language_come_through(sandbox: Sandbox) -> None:
    text = 'Grüße, 你好, Привет, 🎉 done'
    expect.finished(sandbox.run(f"echo '{text}'"), text)
    (sandbox.directory / 'データ.txt').write_text('x')
    expect.finished(sandbox.run('ls'), 'データ.txt')


@cases.case()
def a_line_wider_than_the_screen_is_one_line(sandbox: Sandbox) -> None:
    line = ''.join(f'{n}-' for n in range(1, 1001))
    expect.finished(sandbox.run("printf '%s-' $(seq 1000); echo; echo after"), f'{line}\nafter')


@cases.case()
def errors_and_output_share_the_screen_in_order(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo one; echo two >&2; echo three'), 'one\ntwo\nthree')


@cases.case()
def programs_see_a_terminal(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('test -t 0 && test -t 1 && test -t 2'), '')
    expect.finished(sandbox.run('stty size'), '1000 1000')
