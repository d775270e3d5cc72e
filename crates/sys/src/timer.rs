//! Ways to wait for a release.
