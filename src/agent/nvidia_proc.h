/* nvidia_proc.h - what NVIDIA's kernel driver writes below /proc/driver/nvidia.
 *
 * A driver that hangs keeps whoever reads a GPU's page there: only the device helper may ask for one. The pages of capabilities are numbers
 * that the driver has from its start, and answer in any case. */
#pragma once
#include "base/arena.h"

enum { NVIDIA_PROC_BYTES = 8192 };
bool nvidia_proc_read(const char *path, char out[static NVIDIA_PROC_BYTES]);
bool nvidia_proc_value(const char *text, const char *key, char *out, size_t room);      /* "Device Minor: \t 0": the word behind the key */
/* "/dev/nvidia1" of the GPU with that UUID or that address (NULL: it is not known), or NULL; gpus: the folder with one page for each. */
const char *nvidia_proc_device(const char *gpus, const char *uuid, const char *pci, struct arena *mem);
