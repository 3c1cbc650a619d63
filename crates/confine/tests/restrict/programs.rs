//! Ordinary programs under all layers.

use std::process::Command;

use crate::victim::{Case, Outcome, Setting};

const SHELL: &str = r#"
set -euo pipefail
[ "$(printf 'b\na\n' | sort | head -1)" = a ]
sleep 0 & wait $!
cat <(echo one) > file; read -r line < file; [ "$line" = one ]
mkfifo pipe; (echo through > pipe) & read -r line < pipe; [ "$line" = through ]; wait
trap 'true' USR1; kill -USR1 $$
umask 077; mkdir -p a/b; touch a/b/c; chmod 600 a/b/c; cp -a a d; mv d e; ln -s e f; rm -r a e f
[ "$(ulimit -n)" = 256 ]
tar -cf archive.tar file && tar -tf archive.tar > /dev/null
find . -name file | xargs grep -q one
date > /dev/null; id > /dev/null; ps > /dev/null || true
timeout 5 true
"#;

const PYTHON: &str = r#"
import asyncio, ctypes, mmap, multiprocessing, os, random, select, signal, socket, sqlite3
import subprocess, tempfile, threading, time
assert subprocess.run(["/bin/echo", "x"], capture_output=True).stdout == b"x\n"
answers = []
threads = [threading.Thread(target=answers.append, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert sorted(answers) == list(range(8))
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
async def talk():
    async def serve(reader, writer):
        writer.write(await reader.read(1)); await writer.drain(); writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"x"); assert await reader.read(1) == b"x"; writer.close()
    process = await asyncio.create_subprocess_exec("/bin/true"); assert await process.wait() == 0
asyncio.run(talk())
database = sqlite3.connect("file.db"); database.execute("create table t (a)"); database.commit()
with tempfile.TemporaryFile() as f:
    f.write(b"x" * 4096); f.flush(); mmap.mmap(f.fileno(), 4096)[0]
socket.if_nameindex(); os.getrandom(4); os.sched_getaffinity(0); time.sleep(0)
signal.setitimer(signal.ITIMER_REAL, 60); signal.setitimer(signal.ITIMER_REAL, 0)
os.memfd_create("x"); os.eventfd(0) if hasattr(os, "eventfd") else None
"#;

const GIT: &str = r#"
set -euo pipefail
git init -q repository; cd repository
git config user.email a@example.com; git config user.name a
echo one > file; git add file; git commit -qm one
git checkout -qb other; echo two >> file; git commit -qam two; git rebase -q HEAD~1
git stash list; git log --oneline | wc -l; git gc -q; git worktree add -q ../tree HEAD~1
git clone -q . ../copy; git -C ../copy status --porcelain; git fsck
"#;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::works("bash_works", |setting| run(setting, "bash", &["-c", SHELL])),
        Case::works("python_works", |setting| {
            run(setting, "python3", &["-c", PYTHON])
        }),
        Case::works("git_works", |setting| run(setting, "bash", &["-c", GIT])),
        Case::works("threads_and_pipes_work", |_| {
            let (mut reader, mut writer) = std::io::pipe().unwrap();
            let sender = std::thread::spawn(move || std::io::Write::write_all(&mut writer, b"x"));
            sender.join().unwrap().unwrap();
            Outcome::of(std::io::Read::read_exact(&mut reader, &mut [0]))
        }),
    ]
}

/// Succeeds without a word, or tells what the program said.
fn run(setting: &Setting, program: &str, arguments: &[&str]) -> Outcome {
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &setting.inside)
        .env("TMPDIR", &setting.inside)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(&setting.inside)
        .output();
    match output {
        Ok(output) if output.status.success() => Outcome::done(""),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).replace('\n', " | ");
            Outcome::Done(format!("{}: {said}", output.status))
        }
        Err(error) => Outcome::of::<(), _>(Err(error)),
    }
}
