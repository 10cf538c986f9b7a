#include "model/role.h"
#include <stdio.h>

static const struct { const char *name; enum role role; } names[] = {
    { "viewer", ROLE_VIEWER },     { "developer", ROLE_DEVELOPER }, { "admin", ROLE_ADMIN },
    { "operator", ROLE_OPERATOR }, { "auditor", ROLE_AUDITOR },     { "node", ROLE_NODE },
};

unsigned role_parse(const char *text)
{
    unsigned roles = 0;
    while (*text) {
        size_t n = strcspn(text, ", ");
        unsigned one = 0;
        for (size_t i = 0; i < COUNT(names); i++)
            if (strlen(names[i].name) == n && strncmp(names[i].name, text, n) == 0)
                one = names[i].role;
        if (!one)
            return 0;
        roles |= one;
        text += n;
        text += strspn(text, ", ");
    }
    return roles;
}

const char *role_text(char out[static 96], unsigned roles)
{
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < COUNT(names); i++)
        if (roles & names[i].role)
            n += (size_t)snprintf(out + n, 96 - n, "%s%s", n ? "," : "", names[i].name);
    return out;
}
