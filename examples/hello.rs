//! The first program one would write; the README shows it.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use durably::prelude::*;

const HELLO: WorkflowRef<String, String> = WorkflowRef::new("hello");

async fn hello(ctx: Ctx, name: String) -> Result<String> {
    let greeting = ctx.step("greet", async || Ok(format!("Hello, {name}!"))).await?;
    ctx.sleep(Duration::from_secs(5)).await?;
    ctx.step("print", async || {
        println!("{greeting}");
        Ok(())
    })
    .await?;
    Ok(greeting)
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder().function(HELLO, hello).start("sqlite:hello.db").await?;
    let greeting = engine.run(HELLO, &"world".into()).idempotency_key("first").await?;
    println!("{greeting}");
    Ok(())
}
