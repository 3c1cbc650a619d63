"""Repositories: the client's own helpers, and git in the shell."""

from pathlib import Path

from . import expect
from .registry import Cases
from .sandbox import Sandbox

cases = Cases()
CASES = cases.listed


def repository(sandbox: Sandbox, name: str = '.') -> Path:
    """A repository with one commit on the branch `work`."""
    path = sandbox.directory / name
    path.mkdir(exist_ok=True)
    (path / 'a.txt').write_text('one\ntwo\n')
    (path / 'b.txt').write_text('gone soon\n')
    sandbox.output(f'cd {path} && git init -q && git checkout -q -b work && git add . && git commit -q -m first', timeout=20)
    return path


@cases.case()
def git_works_without_a_pager(sandbox: Sandbox) -> None:
    path = repository(sandbox)
    (path / 'a.txt').write_text(''.join(f'{n}\n' for n in range(3000)))
    observation = sandbox.run('git diff', hidden=True, timeout=20)
    expect.equal(observation.exit_code, 0)
    expect.contains(observation.content, '+2999')
    expect.finished(sandbox.run('git log --format=%s%n%an%n%ae'), 'first\nopenhands\nopenhands@all-hands.dev')
    expect.contains(sandbox.output('git add . && git commit -m "second one"', timeout=20), '[work ')


@cases.case()
def the_branch_is_told(sandbox: Sandbox) -> None:
    path = repository(sandbox)
    handler = sandbox.runtime.git_handler
    handler.set_cwd(str(path))
    expect.equal(handler.get_current_branch(), 'work')
    (sandbox.elsewhere / 'no-repository').mkdir()
    handler.set_cwd(str(sandbox.elsewhere / 'no-repository'))
    expect.equal(handler.get_current_branch(), None)


@cases.case()
def changes_are_listed(sandbox: Sandbox) -> None:
    path = repository(sandbox, 'repo')
    sandbox.output('git clone -q --bare . ../bare && git remote add origin ../bare && git fetch -q', timeout=20)
    (path / 'a.txt').write_text('one\nTWO\n')
    (path / 'b.txt').unlink()
    (path / 'new.txt').write_text('n\n')
    expect.equal(
        sandbox.runtime.get_git_changes(str(path)),
        [{'status': 'M', 'path': 'a.txt'}, {'status': 'D', 'path': 'b.txt'}, {'status': 'A', 'path': 'new.txt'}],
    )
    expect.equal(
        sandbox.runtime.get_git_diff('a.txt', str(path)), {'modified': 'one\nTWO', 'original': 'one\ntwo'}
    )


@cases.case()
def a_list_of_changes_wider_than_the_screen_is_whole(sandbox: Sandbox) -> None:
    path = repository(sandbox)
    for number in range(200):
        (path / f'untracked file number {number:03}.txt').touch()
    changes = sandbox.runtime.get_git_changes(str(path))
    expect.equal(len([change for change in changes if change['path'].startswith('untracked')]), 200)


@cases.case()
def a_repository_is_made_in_an_empty_workspace(sandbox: Sandbox) -> None:
    import asyncio

    expect.equal(asyncio.run(sandbox.runtime.clone_or_init_repo(None, None, None)), '')
    expect.equal((sandbox.directory / '.git').is_dir(), True)
    expect.contains(sandbox.output('git config --global --get-all safe.directory'), str(sandbox.workspace))


@cases.case()
def a_hook_of_the_project_is_installed(sandbox: Sandbox) -> None:
    path = repository(sandbox)
    (path / '.openhands').mkdir()
    (path / '.openhands' / 'pre-commit.sh').write_text('echo "hook ran" > hook.log\n')
    sandbox.runtime.maybe_setup_git_hooks()
    hook = path / '.git' / 'hooks' / 'pre-commit'
    expect.equal(hook.stat().st_mode & 0o111, 0o111)
    sandbox.output('git add . && git commit -q -m hooked', timeout=20)
    expect.equal((path / 'hook.log').read_text(), 'hook ran\n')
