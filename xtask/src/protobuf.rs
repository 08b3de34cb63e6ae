//! `cargo xtask protobuf`: generates the table of messages of `rbuilder-protobuf` from the Go types of
//! the newest Kubernetes, and records objects that Go has encoded (see tools/protobuf).

use anyhow::{Context as _, Result};
use rbuilder_catalogue::versions::{KUBERNETES, release_of};

use crate::assets::download_module;
use crate::committed::{Check, update_file};
use crate::repo;
use crate::sh::Cmd;

const TABLE: &str = "crates/protobuf/src/table.txt";
const RECORDED: &str = "crates/protobuf/tests/recorded.jsonl";

pub(crate) fn update_table(args: &Check) -> Result<()> {
    let release = release_of(KUBERNETES).context("the minor of the tests has no release")?;
    let source = download_module(&format!("k8s.io/kubernetes@v1.{release}"), &std::env::temp_dir())?;
    let folder = repo::root().join("tools/protobuf");
    for (command, path) in [("table", TABLE), ("record", RECORDED)] {
        let program = Cmd::new("go run .")
            .arg(command)
            .arg(source.join("api/discovery"));
        let new = program.dir(&folder).read()?;
        update_file(path, new.as_bytes(), args.check, "protobuf")?;
    }
    Ok(())
}
