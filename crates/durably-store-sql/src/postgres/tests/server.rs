//! What needs a server of its own.

use super::scene::{Database, client, ground, insert, load, refusal, session, url_of};
use crate::session::Session;
use durably_store::{Class, StoreError};
use durably_testbed::{Server, ServerOptions};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

#[tokio::test]
async fn a_server_that_crashes_is_back_without_restarting_us() {
    let server = Server::postgres(&ServerOptions::default()).expect("a server");
    let database = Database::on(&server);
    let ground = ground(&database.url()).await;
    let mut before = session(&ground).await;
    before.begin(vec![]).await.expect("begins");
    before.ask(vec![insert(100)]).await.expect("writes");
    let idle = session(&ground).await;
    drop(idle);
    server.stop_immediate().expect("stops");
    before.finish(vec![insert(101)]).await.expect_err("the server is gone");
    drop(before);
    let gone = ground.work.session().await.err().expect("nobody is there");
    let context =
        crate::error::Context { store: "x", operation: "x", phase: crate::error::Phase::Statement };
    let error = gone.into_error(context);
    assert!(matches!(error.class(), Class::Transient { .. }), "{error}");
    server.start_again().expect("starts");
    let mut after = session(&ground).await;
    after.begin(vec![]).await.expect("begins");
    let rows = after.ask(vec![load()]).await.expect("reads").remove(0);
    assert_eq!(rows.len(), 2, "what was not finished is not there");
}

#[tokio::test]
async fn when_the_first_server_may_only_be_read_the_second_is_used() {
    let first = Server::postgres(&ServerOptions::default()).expect("a server");
    let second = Server::postgres(&ServerOptions::default()).expect("a server");
    let database = Database::on(&first);
    let admin = client(&second.url()).await;
    admin.batch_execute("alter role durably password 'shared'").await.expect("a password");
    let admin = client(&first.url()).await;
    admin.batch_execute("alter role durably password 'shared'").await.expect("a password");
    let (one, two) = (format!(":{}/", first.port()), format!(":{}/", second.port()));
    let both = format!(":{},127.0.0.1{two}", first.port());
    let url = url_of(&database.url_with("listen=off"), "durably", "shared").replace(&one, &both);
    let ground = ground(&url).await;
    let mut before = session(&ground).await;
    assert_eq!(before.port().await, Some(i32::from(first.port())));
    admin
        .batch_execute("alter system set default_transaction_read_only = on")
        .await
        .expect("is read only");
    admin.batch_execute("select pg_reload_conf()").await.expect("reloads");
    // A connection that is there hears of it between two transactions.
    loop {
        before.begin(vec![]).await.expect("begins");
        if before.ask(vec![insert(100)]).await.is_err() {
            break;
        }
        before.roll_back().await;
    }
    drop(before);
    let mut after = session(&ground).await;
    assert_eq!(after.port().await, Some(i32::from(second.port())));
}

#[tokio::test]
async fn too_many_connections_are_a_matter_of_time() {
    let options = ServerOptions::default().set("max_connections", "6");
    let options = options.set("superuser_reserved_connections", "0");
    let server = Server::postgres(&options).expect("a server");
    let database = Database::on(&server);
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(client(&server.url()).await);
    }
    let error = refusal(&database.url()).await;
    assert!(matches!(error.class(), Class::Transient { .. }), "{error}");
    assert!(error.to_string().contains("pool="), "{error}");
}

#[tokio::test]
async fn a_server_without_fsync_is_refused() {
    let server = Server::postgres(&ServerOptions::default().without_fsync()).expect("a server");
    let database = Database::on(&server);
    let error = refusal(&database.url()).await;
    assert!(matches!(&error, StoreError::Unsafe { setting: "fsync", .. }), "{error}");
    ground(&database.url_with("unsafe=allowed")).await;
}

#[tokio::test]
async fn mariadb_is_no_postgres() {
    let server = durably_testbed::mysql().expect("a server");
    let at = server.find('@').expect("a host");
    let error = refusal(&format!("postgres://me:x{}/d", server[at..].trim_end_matches('/'))).await;
    assert!(error.to_string().contains("no PostgreSQL"), "{error}");
    assert_eq!(error.class(), Class::Permanent, "{error}");
}

#[tokio::test]
async fn who_cannot_log_in_is_told_what_to_check() {
    let database = Database::new("login");
    let wrong = url_of(&database.url(), "durably", "s3cret");
    let missing = wrong.replace(":s3cret@", "@");
    let nobody = url_of(&database.url(), "nobody_like_this", "s3cret");
    for (url, problem) in
        [(wrong, "check user and password"), (missing, "password"), (nobody, "check user")]
    {
        let error = refusal(&url).await;
        assert_eq!(error.class(), Class::Permanent, "{error}");
        let text = error.to_string();
        assert!(text.contains(problem) && !text.contains("s3cret"), "{text}");
    }
}

/// Gives a server a certificate for `localhost`; the certificate of who signed it is at the path.
async fn encrypt(server: &Server, authority_file: &Path) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = params.self_signed(&key).expect("an authority");
    std::fs::write(authority_file, authority.pem()).expect("writes");
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    let data = server.folder().join("data");
    let owner = std::fs::metadata(&data).expect("the data folder");
    for (name, text) in [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())] {
        let path = data.join(name);
        std::fs::write(&path, text).expect("writes");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("is private");
        chown(&path, Some(owner.uid()), Some(owner.gid())).expect("is the server's");
    }
    let client = client(&server.url()).await;
    client.batch_execute("alter system set ssl = on").await.expect("sets it");
    client.batch_execute("select pg_reload_conf()").await.expect("reloads");
}

#[tokio::test]
async fn connections_are_encrypted_and_servers_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::postgres(&ServerOptions::default()).expect("a server");
    let database = Database::on(&server);
    // One that has no encryption yet.
    let error = refusal(&database.url_with("sslmode=require")).await;
    assert_eq!(error.class(), Class::Permanent, "{error}");
    assert!(error.to_string().contains("TLS"), "{error}");
    let (authority, other) = (folder.path().join("a.pem"), folder.path().join("b.pem"));
    encrypt(&server, &other).await;
    encrypt(&server, &authority).await;
    let named = |params: &str| database.url_with(params).replace("127.0.0.1", "localhost");
    let right = format!("sslrootcert={}", authority.display());
    ground(&database.url_with("sslmode=prefer")).await;
    ground(&database.url_with("sslmode=require")).await;
    ground(&database.url_with("sslmode=disable")).await;
    let verified = ground(&named(&right)).await;
    let mut session = session(&verified).await;
    assert_eq!(session.encrypted().await, Some(true));
    let wrong = format!("sslmode=verify-full&sslrootcert={}", other.display());
    for url in [named(&wrong), named("sslmode=verify-full"), database.url_with(&right)] {
        let error = refusal(&url).await;
        assert_eq!(error.class(), Class::Permanent, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    let nothing = named("sslrootcert=/nowhere.pem");
    assert!(refusal(&nothing).await.to_string().contains("/nowhere.pem"));
}
