/* version.h - of the whole program. */
#pragma once
#define ARCUS_VERSION "0.1.0"
