//! What rbuilder scaffolds.
