/* response.c - what a server may answer to our client, to a HEAD and to anything else. */
#include "http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    told_the_same(HTTP_PARSE_RESPONSE, false, data, size);
    return told_the_same(HTTP_PARSE_RESPONSE, true, data, size);
}
