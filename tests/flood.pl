# flood.pl - connections that mean no good, against one server: each kind as many as asked for, for so many seconds.
#
#   perl tests/flood.pl ADDRESS:PORT KEY SECONDS KIND=COUNT...
#
# Kinds: half (part of a head, then silence), head (a head that never ends), pipeline (requests without end, replies unread), body (most of a
# large body, then silence), follow (events that nobody reads), garbage, idle. A connection that the server closes is made anew, but for idle ones.
# Prints how many were made of each kind.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);
use Errno qw(EAGAIN EWOULDBLOCK EINPROGRESS);

my ($to, $key, $seconds, @kinds) = @ARGV;
my $auth = "Host: h\r\nAuthorization: Bearer $key\r\n";
my %say = (
    idle => sub { "" },
    half => sub { "GET /v1/jobs HTTP/1.1\r\nX-Long: " . "x" x 12000 },
    head => sub { "GET /v1/jobs HTTP/1.1\r\n" . "X-Many: 1\r\n" x 5000 },
    pipeline => sub { "GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n" x 1000 },
    body => sub { "POST /v1/jobs HTTP/1.1\r\n${auth}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n" . "x" x 900_000 },
    follow => sub { "GET /v1/events?follow=true HTTP/1.1\r\n$auth\r\n" },
    garbage => sub { join '', map { chr int rand 256 } 1 .. 2000 },
);
my %endless = (pipeline => 1);
my (%made, %out, %kind, @want);
for (@kinds) { my ($k, $n) = split /=/; die "unknown kind $k\n" unless $say{$k}; push @want, ($k) x $n; $made{$k} = 0; $say{$k} = do { my $text = $say{$k}->(); sub { $text } } unless $k eq 'garbage' }
$SIG{PIPE} = 'IGNORE';
my ($reads, $writes, $end) = (IO::Select->new, IO::Select->new, time + $seconds);
sub drop { my $s = shift; $reads->remove($s); $writes->remove($s); my $k = delete $kind{$s}; push @want, $k if $k ne 'idle'; delete $out{$s}; close $s }
while (time < $end) {
    for (1 .. 20) {
        my $k = shift @want // last;
        my $s = IO::Socket::INET->new(PeerAddr => $to, Proto => 'tcp', Timeout => 1);
        if (!$s) { push @want, $k; last }
        $s->blocking(0);
        $made{$k}++;
        ($kind{$s}, $out{$s}) = ($k, $say{$k}->());
        $reads->add($s) if $k ne 'pipeline' && $k ne 'follow';
        $writes->add($s) if length $out{$s} || $endless{$k};
    }
    my ($can_read, $can_write) = IO::Select->select($reads, $writes, undef, 0.02);
    for my $s (@{ $can_write // [] }) {
        $out{$s} = $say{ $kind{$s} }->() if !length $out{$s} && $endless{ $kind{$s} };
        if (!length $out{$s}) { $writes->remove($s); next }
        my $n = syswrite $s, $out{$s}, 65536;
        if (defined $n) { substr($out{$s}, 0, $n) = '' } elsif ($! != EAGAIN && $! != EWOULDBLOCK) { drop($s) }
    }
    for my $s (@{ $can_read // [] }) {
        next unless exists $kind{$s};
        my $n = sysread $s, my $buffer, 65536;
        drop($s) if defined $n ? $n == 0 : $! != EAGAIN && $! != EWOULDBLOCK;
    }
}
print join(' ', map { "$_=$made{$_}" } sort keys %made), "\n";
