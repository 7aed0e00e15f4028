//! smoke
use durably::prelude::*;
const HELLO: WorkflowRef<String, String> = WorkflowRef::new("hello");
const SHOUT: ActivityRef<String, String> = ActivityRef::new("shout");

async fn hello(ctx: Ctx, name: String) -> Result<String> {
    let greeting = ctx.step("greet", async || Ok(format!("Hello, {name}!"))).await?;
    ctx.sleep(Duration::from_millis(50)).await?;
    let loud = ctx.activity(SHOUT, &greeting).await?;
    ctx.step("print", async || { Ok(()) }).await?;
    Ok(loud)
}

struct Five { n: u32 }
impl Workflow for Five {
    const TYPE: &'static str = "five";
    type Input = u32;
    type Output = u32;
    fn new(n: u32) -> Self { Five { n } }
    fn on_start(&mut self) -> Actions<Self> { actions![Action::activity("a0", SHOUT, &"x".to_string())] }
    fn on_activity_completed(&mut self, _id: &str, r: &Output) -> Actions<Self> {
        assert!(r.of(SHOUT)?.is_some());
        self.n += 1;
        if self.n < 5 { actions![Action::activity(format!("a{}", self.n), SHOUT, &"y".to_string())] } else { actions![Action::complete(&self.n)] }
    }
}

#[tokio::test]
async fn runs() {
    let engine = Engine::builder().function(HELLO, hello).workflow::<Five>()
        .activity_fn(SHOUT, async |_, s: String| Ok(s.to_uppercase())).start("memory:").await.unwrap();
    let t = std::time::Instant::now();
    let out = engine.run(HELLO, &"world".into()).idempotency_key("first").await.unwrap();
    assert_eq!(out, "HELLO, WORLD!");
    println!("{:?}", t.elapsed());
    let h = engine.start(Five::REF, &0).await.unwrap();
    assert_eq!(h.result().await.unwrap(), 5);
    println!("{:?}", t.elapsed());
    println!("{:#?}", h.trail().await.unwrap());
    engine.stop().await.unwrap();
}
