//! Scratch.
#[path = "../../facades/tests/it/provider.rs"]
#[allow(dead_code, reason = "scratch")]
mod provider;
#[path = "../tests/it/site.rs"]
#[allow(dead_code, reason = "scratch")]
mod site;
#[tokio::main]
async fn main() {
    let kind = if std::env::args().nth(1).as_deref() == Some("native") { provider::Kind::Native } else { provider::Kind::Cli };
    let site = site::Site::start(kind).await;
    std::fs::write("/tmp/scratch-serve.key", &site.admin).unwrap();
    std::fs::write("/tmp/scratch-serve.url", &site.url).unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    site.stop().await;
}
