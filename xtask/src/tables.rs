//! `cargo xtask tables`: generates the columns of built-in kinds from kube-apiserver's printers, and
//! records the tables that they print (see tools/kube-apiserver/tables).
//!
//! Each line of crates/printers/tests/tables.jsonl has an object or a list, and for custom resources
//! the columns of their CRD. To add a case, add a line without rows. Ages are relative to
//! 2000-01-01T00:00:00Z.

use anyhow::Result;

use crate::committed::{Check, update_file};
use crate::repo;
use crate::sh::Cmd;

const COLUMNS: &str = "crates/printers/src/columns.txt";
const RECORDED: &str = "crates/printers/tests/tables.jsonl";

pub(crate) fn record(args: &Check) -> Result<()> {
    let module = repo::root().join("tools/kube-apiserver");
    let program = || Cmd::new("go run ./tables").dir(&module);
    let columns = program().arg("columns").read()?;
    update_file(COLUMNS, columns.as_bytes(), args.check, "tables")?;
    let rows = program().arg("record").arg(repo::root().join(RECORDED)).read()?;
    update_file(RECORDED, rows.as_bytes(), args.check, "tables")
}
