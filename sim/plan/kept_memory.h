// Memory that was freed stays with the process for what comes next. For main().
#pragma once

namespace cpfit {

/// A step on the timeline fills and frees some megabytes; a recipe later the same ones are wanted again. The C library by default
/// gives them back to the system each time, and the pages then come back one fault after the other, which took a quarter of a
/// timeline's time. From here on up to 64 MiB of freed memory are kept; blocks above 4 MiB (a million activities) go back at once
/// as ever. Nothing happens where the C library has no such setting.
void keep_freed_memory();

}  // namespace cpfit
