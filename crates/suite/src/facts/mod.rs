//! What a reader needs to judge the numbers: readers of /proc and /sys with a root folder.
