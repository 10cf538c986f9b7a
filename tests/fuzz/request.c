/* request.c - what a client may send to the server. */
#include "http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return told_the_same(HTTP_PARSE_REQUEST, false, data, size); }
