"""Commands that end: state, exit codes, quoting, several lines, and what is refused."""

import os
import shlex

from openhands.events.observation import ErrorObservation

from . import expect
from .registry import Cases
from .sandbox import Sandbox

cases = Cases()
CASES = cases.listed


@cases.case()
def state_is_kept_between_commands(sandbox: Sandbox) -> None:
    sandbox.output('mkdir inner && cd inner')
    sandbox.output('COLOUR="dark blue"')
    sandbox.output('greet() { echo "hello $1"; }')
    sandbox.output('alias say="echo said"')
    sandbox.output('set -o noclobber')
    expect.finished(sandbox.run('pwd'), str(sandbox.directory / 'inner'))
    expect.finished(sandbox.run('echo "$COLOUR"'), 'dark blue')
    expect.finished(sandbox.run('greet you'), 'hello you')
    expect.finished(sandbox.run('say it'), 'said it')
    expect.finished(sandbox.run('echo a > once && echo b > once'), 'bash: once: cannot overwrite existing file', 1)
    sandbox.output('set +o noclobber')
    expect.equal(sandbox.run('true').metadata.working_dir, str(sandbox.directory / 'inner'))


@cases.case()
def exit_codes_come_back(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('true'), '')
    expect.finished(sandbox.run('false'), '', 1)
    expect.finished(sandbox.run('(exit 42)'), '', 42)
    expect.finished(sandbox.run('no_such_command_here'), 'bash: no_such_command_here: command not found', 127)
    expect.finished(sandbox.run("bash -c 'kill -9 $$'"), 'Killed', 137)


@cases.case()
def files_made_by_a_command_are_ours(sandbox: Sandbox) -> None:
    sandbox.output('mkdir made && touch made/file.txt')
    listing = sandbox.output('ls -l made')
    expect.contains(listing, 'file.txt', 'total 0')
    expect.equal((sandbox.directory / 'made' / 'file.txt').stat().st_uid, os.getuid())
    expect.finished(sandbox.run('rm -r made && ls -A'), '')


@cases.case()
def commands_on_one_line_are_one_command(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo a; echo b && echo c || echo d'), 'a\nb\nc')
    expect.finished(sandbox.run('pwd && ls -A'), str(sandbox.directory))
    expect.finished(sandbox.run('printf "b\\na\\n" | sort'), 'a\nb')
    expect.finished(sandbox.run('false; echo $?'), '1')


@cases.case()
def space_inside_the_output_is_kept(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo "two  three   x"'), 'two  three   x')
    expect.finished(sandbox.run("printf 'top\\n   indented\\n\\n\\nend\\n'"), 'top\n   indented\n\n\nend')


@cases.case()
def a_command_may_have_several_lines(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo one \\\n two \\\n three'), 'one two three')
    expect.finished(sandbox.run('echo "first\nsecond"'), 'first\nsecond')
    expect.finished(sandbox.run('echo -e "a\\n\\n\\nz"'), 'a\n\n\nz')
    expect.finished(
        sandbox.run('for i in 1 2; do\n  for j in x y; do\n    echo "$i$j" | sed -E "s/([0-9])(.)/\\2\\1/"\n  done\ndone'),
        'x1\ny1\nx2\ny2',
    )
    expect.finished(sandbox.run('if true; then\n  echo yes\nfi'), 'yes')


@cases.case()
def a_loop_with_arithmetic_fits_on_one_line(sandbox: Sandbox) -> None:
    expect.finished(
        sandbox.run('n=0; while [ $n -lt 6 ]; do n=$((n+1)); if [ $((n % 2)) -eq 0 ]; then echo "even $n"; fi; done'),
        'even 2\neven 4\neven 6',
    )


@cases.case()
def a_here_document_reaches_the_program(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('cat <<EOF\nfirst $((1 + 1))\n  second\nEOF'), 'first 2\n  second')
    expect.finished(sandbox.run("cat <<'EOF' > note\n$HOME and `date`\nEOF"), '')
    expect.equal((sandbox.directory / 'note').read_text(), '$HOME and `date`\n')


@cases.case()
def no_continuation_prompt_is_shown(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo "a\nb\nc"'), 'a\nb\nc')
    expect.lacks(sandbox.output('echo \\\nx'), '>')


@cases.case()
def several_commands_at_once_are_refused_and_named(sandbox: Sandbox) -> None:
    commands = ['ls -l', 'echo -e "hello\nworld"', 'echo "quoted \\"word\\""', 'for i in 1 2\ndo echo $i\ndone']
    expect.error(
        sandbox.act('\n'.join(commands)),
        'ERROR: Cannot execute multiple commands at once.\n'
        'Please run each command separately OR chain them into a single command via && or ;\n'
        'Provided commands:\n' + '\n'.join(f'({n}) {command}' for n, command in enumerate(commands, 1)),
    )
    expect.finished(sandbox.run(commands[0]), 'total 0')
    expect.finished(sandbox.run(commands[1]), 'hello\nworld')
    expect.finished(sandbox.run(commands[2]), 'quoted "word"')
    expect.finished(sandbox.run(commands[3]), '1\n2')


@cases.case()
def a_refused_group_leaves_nothing_done(sandbox: Sandbox) -> None:
    observation = sandbox.act('touch first\ntouch second')
    expect.equal(type(observation), ErrorObservation)
    expect.finished(sandbox.run('ls -A'), '')


@cases.case()
def a_backslash_before_a_semicolon_at_the_end_works(sandbox: Sandbox) -> None:
    (sandbox.directory / 'hit.txt').write_text('implemented_function\n')
    (sandbox.directory / 'miss.txt').write_text('nothing\n')
    content = sandbox.output(f'find {shlex.quote(str(sandbox.directory))} -type f -exec grep -l "implemented_function" {{}} \\;')
    # The original shows the command again above the result, because it doubled the backslash.
    expect.equal(content.splitlines()[-1], str(sandbox.directory / 'hit.txt'))


@cases.case(better='the original leaves the command in its output')
def an_empty_line_inside_a_command_is_harmless(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('if true; then\n\n  echo yes\n\nfi'), 'yes')


@cases.case(better='the original doubles the backslash')
def escaped_operators_inside_a_word_are_kept(sandbox: Sandbox) -> None:
    for word in ('a;b', 'a|b', 'a&b', 'a<b', 'a>b'):
        escaped = word[0] + '\\' + word[1:]
        observation = sandbox.run(f'echo {escaped}')
        expect.finished(observation, word)
        expect.equal(observation.command, f'echo {escaped}')
    (sandbox.directory / 'found').touch()
    expect.finished(sandbox.run('find . -type f -exec basename {} \\; | cat'), 'found')


@cases.case(better='the original loses literal tabs to completion')
def a_tab_in_a_command_is_a_tab(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run("printf '%s' 'a\tb' | od -An -c | tr -s ' '"), 'a \\t b')


@cases.case(better='the original expands history, or eats the text')
def an_exclamation_mark_is_just_a_character(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo "well done!"; echo "!!"'), 'well done!\n!!')


@cases.case(better='the original never runs a command above 16 KiB')
def a_command_of_a_hundred_kilobytes_runs(sandbox: Sandbox) -> None:
    word = 'abcdefghij' * 10_000
    expect.finished(sandbox.run(f'printf %s "{word}" | wc -c | tr -d " "'), '100000')


@cases.case(better='the original answers with an error of its own parser')
def a_comment_is_a_command_that_does_nothing(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('# only a remark'), '')
    expect.finished(sandbox.run('echo a # with a remark'), 'a')


@cases.case(better='the shell of the original is dead from then on')
def after_exit_there_is_a_new_shell(sandbox: Sandbox) -> None:
    observation = sandbox.run('exit 7')
    expect.equal(observation.exit_code, 7)
    expect.finished(sandbox.run('echo alive'), 'alive')


@cases.case()
def the_echoed_command_is_not_part_of_the_output(sandbox: Sandbox) -> None:
    sandbox.output('git init -q . && git remote add origin https://example.invalid/some/repo.git')
    content = sandbox.output('git remote -v')
    expect.equal(
        content,
        'origin  https://example.invalid/some/repo.git (fetch)\norigin  https://example.invalid/some/repo.git (push)',
    )


@cases.case()
def python_is_found(sandbox: Sandbox) -> None:
    expect.contains(sandbox.output('python --version'), 'Python 3')


@cases.case()
def the_home_directory_is_the_one_of_the_user(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('cd ~ && pwd'), str(sandbox.home))


@cases.case()
def a_separate_shell_runs_elsewhere_and_leaves_no_trace(sandbox: Sandbox) -> None:
    (sandbox.directory / 'other').mkdir()
    sandbox.output('MARK=main')
    observation = sandbox.run('pwd; echo "[$MARK]"; cd /; MARK=changed', is_static=True, cwd=str(sandbox.directory / 'other'))
    expect.equal((observation.content, observation.exit_code), (f'{sandbox.directory}/other\n[]', 0))
    expect.finished(sandbox.run('pwd; echo "$MARK"'), f'{sandbox.directory}\nmain')
