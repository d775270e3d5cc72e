//! Settings and things that punctual leaves on a board while it runs: journalled first, undone at the end.
