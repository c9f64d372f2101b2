/* C that stands at the head of each kernel. */
#ifndef AUTOSCHEDULER_PRELUDE_H
#define AUTOSCHEDULER_PRELUDE_H

/* v4, v8, v16: vectors of so many numbers; max_, exp_, every2_ and padded_ of them; the same of single numbers. */
extern const char kernel_prelude[];

#endif
