//! The rbuilder command.
