/* xid.h - what the errors mean that NVIDIA's driver tells by number (XIDs): whose fault, and whether the device can be used after it. */
#pragma once
#include "base/base.h"

/* NULL: the device is fine: the program that ran on it made the error, or it is not known to be worse. Else why nothing may be placed there. */
const char *xid_bad(int64_t xid);
bool xid_of_program(int64_t xid);       /* a program's compute ended with it: where several share one context, theirs did too */
/* Of a bad one: can a test of memory and arithmetic show that it is over? Else it takes a reset, a repair or another start of the machine. */
bool xid_tested(int64_t xid);
