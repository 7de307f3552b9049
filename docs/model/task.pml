/* The life of one task in Promela: a second model of the protocol, written
   apart from the state machine. README.md says what is modelled and what not.

   Two workers, two servers and two managers act on one Redis. Each call is a
   script, hence atomic. Its answer may be lost, and then the same call is made
   again. A program that pauses is a process whose next step is not taken.

   Parts:       CRASH  programs die        PAUSE  leases run out under the living
                HANDLE managers handle     LOSS   Redis goes back in time, once
                TWO    a second server     LIVE   a standstill counts as a run
                SETTLE workers settle what has succeeded, and a stop may be asked for
                AHEAD  workers hold a round that they have not begun
   Controls:    each takes one mechanism away; the table of README.md names them.  */

#define NONE 9
#define MOST 2              /* losses that the task survives */

mtype = { absent, limbo, open, running, executed, ended, archived };

/* What Redis holds. made counts the claims; who and when say of each its worker
   and its epoch, which the id of a claim tells. */
mtype state = absent;
byte round = 0, rev = 0, claim = 0, losses = 0, id = 0, owner = NONE;
byte accepted = 0;          /* reports accepted in this round */
bit bad = 0;                /* the report says that the program failed */
bit verdict = 0;            /* the task has ended as failed */
byte done = 0;              /* times archived */
#ifdef SETTLE
bit asked = 0;              /* a stop was asked for */
#endif
bit epoch = 0;
byte made = 0, who[8];
bit when[8];
#ifdef AHEAD
/* A worker has one slot. busy: it holds a round of another task, which it has claimed
   before this one and not reported. Of the claim in force: early, it was made while
   the slot was taken; begun, the program has begun. */
bit busy[2], early, begun;
byte backs = 0;             /* decisions to hand it back */
#endif

/* What Redis held before each of its last two changes. */
typedef Kept { bit there; mtype state; byte round, rev, claim, losses, id, owner, accepted; bit bad, verdict; byte done }
Kept kept[2];
bit back = 0;               /* it has gone back, */
bit unseen = 0;             /* and no new epoch has been opened yet */

/* Workers: alive; the lease is over as Redis has it; the program is at work; the
   epoch of the session. Managers: the lease is over; the handler is at work. */
bit up[2] = 1, out[2], runs[2], session[2], mout[2], handles[2];
byte crashes = 0, pauses = 0, silences = 0;

/* What must never be. */
bit stale = 0;              /* a report was accepted that was not for the claim in force */
bit twice = 0;              /* two reports of one round were accepted */
bit stranded = 0;           /* the task is in no list, and who took it out is dead */
bit overlap = 0;            /* two workers run it, who should know of each other */
bit misjudged = 0;          /* it has ended otherwise than was reported */
bit paid = 0;               /* it paid for a loss of Redis */
bit reused = 0;             /* an id that was given out means another task now */
bit crowded = 0;            /* two handlers are at work on it */
bit unhandled = 0;          /* it was archived and nobody had handled it */
bit overruled = 0;          /* a worker settled it although a stop was asked for */
bit charged = 0;            /* it paid for a round that was claimed ahead and not begun */
bit anew = 0;               /* its program began twice in a round, or after the hand-back */
byte gone = 0;
bit handledOnce = 0;

#ifdef LOSS
inline copy(k, from) {
  k.there = from.there; k.state = from.state; k.round = from.round; k.rev = from.rev; k.claim = from.claim;
  k.losses = from.losses; k.id = from.id; k.owner = from.owner; k.accepted = from.accepted;
  k.bad = from.bad; k.verdict = from.verdict; k.done = from.done
}
inline wipe(k) {
  k.there = 0; k.state = 0; k.round = 0; k.rev = 0; k.claim = 0; k.losses = 0; k.id = 0; k.owner = 0;
  k.accepted = 0; k.bad = 0; k.verdict = 0; k.done = 0
}
inline change() {           /* each change of Redis begins with this */
  if
  :: !back ->
     copy(kept[1], kept[0]);
     kept[0].there = 1; kept[0].state = state; kept[0].round = round; kept[0].rev = rev; kept[0].claim = claim;
     kept[0].losses = losses; kept[0].id = id; kept[0].owner = owner; kept[0].accepted = accepted;
     kept[0].bad = bad; kept[0].verdict = verdict; kept[0].done = done
  :: else
  fi;
  rev++
}
inline restore(k) {
  gone = (k.state == absent -> id : 0);
  state = k.state; round = k.round; rev = k.rev; claim = k.claim; losses = k.losses; id = k.id; owner = k.owner;
  accepted = k.accepted; bad = k.bad; verdict = k.verdict; done = k.done;
  wipe(kept[0]); wipe(kept[1]);
  back = 1; unseen = 1
}
#else
inline change() { rev++ }
#endif

/* Who has seen more than Redis has is refused until there is a new epoch. UNAWARE
   lets those call first who have not. */
#ifdef UNAWARE
#define ANSWERS true
#else
#define ANSWERS (!unseen)
#endif

#ifdef NOEPOCH
#define CURRENT(c) true
#else
#define CURRENT(c) (when[c] == epoch)
#endif

/* MINE is the guard of a report by the worker that was given round r under c. */
#if defined(ORIG)
#define MINE (state == running)
#elif defined(NOCLAIM)
#define MINE (state == running && round == r)
#elif defined(NOSTATE)
#define MINE (claim == c && round == r && CURRENT(c))
#else
#define MINE (state == running && claim == c && round == r && CURRENT(c))
#endif

/* A worker settles a success if the task is as it was told at its claim. */
#ifdef SETTLE
#define TOLD t = rev; k = asked
#ifdef NOTOLD
#define SETTLES (!failed && !k)
#else
#define SETTLES (!failed && !k && rev == t)
#endif
inline settles() {
  if :: asked -> overruled = 1 :: else fi;
  change(); accepted++; bad = failed; state = ended; verdict = 0;
  if :: bad -> misjudged = 1 :: else fi
}
#else
#define TOLD skip
#endif

inline runs_now() {         /* the program begins */
  runs[me] = 1;
#ifdef AHEAD
  if :: gave || claim == c && begun -> anew = 1 :: else fi;
  if :: claim == c -> begun = 1 :: else fi;
#endif
  if
  :: runs[1-me] && session[1-me] == session[me] -> overlap = 1
  :: else
  fi
}

inline taken() {            /* the worker learns that round r is its own, under c */
  c = made; r = round; TOLD; runs_now()
}

/* What is claimed ahead begins while the lease is not over, and before the round that
   was in the slot is reported. It is handed back by its claim. */
#ifdef NOINTIME
#define INTIME true
#else
#define INTIME (!out[me])
#endif
#ifdef NOGIVEN
#define GIVEN (state == running)
#else
#define GIVEN MINE
#endif

/* After this nothing can happen any more. */
#ifdef LOSS
#define FINAL (state == archived && back && !unseen)
#else
#define FINAL (state == archived)
#endif

proctype Worker(byte me) {
  byte c, r; bit failed;
#ifdef SETTLE
  byte t; bit k;
#endif
#ifdef AHEAD
  bit gave;                 /* it has decided to hand the round back */
#endif
again:
  c = 0; r = 0; failed = 0;
#ifdef AHEAD
  gave = 0;
#endif
#ifdef SETTLE
  t = 0; k = 0;
#endif
  do
  :: FINAL -> goto end
  :: atomic { (out[me] || !up[me] || session[me] != epoch) && (state != running || who[claim] != me || !CURRENT(claim)) ->
#ifdef AHEAD
       busy[me] = 0;
#endif
       up[me] = 1; out[me] = 0; session[me] = epoch }                 /* registers anew */
#ifdef ORIG
  :: atomic { state == open -> state = limbo; r = round };            /* ZREM open */
     if
     :: atomic { crashes < 1 -> crashes++; up[me] = 0; stranded = 1; goto again }
     :: atomic { made++; who[made] = me; claim = made; rev++; state = running; taken() }
     fi;
     break
#else
  :: atomic { state == open && ANSWERS && up[me] && !out[me] && session[me] == epoch ->
       change(); made++; who[made] = me; when[made] = epoch; claim = made; state = running; accepted = 0;
#ifdef AHEAD
       if :: busy[me] = 1 :: busy[me] = 0 fi;
       early = busy[me]; begun = 0;
#endif
       if
#ifdef AHEAD
       :: busy[me] -> c = made; r = round; TOLD; goto hold            /* its slot is taken */
       :: !busy[me] -> taken(); goto work
#else
       :: taken(); goto work
#endif
       :: c = made; r = round                                         /* the answer is lost */
       fi };
     break
#endif
  od;
#ifndef ORIG
  do                                                                  /* it asks again */
#ifdef NOREPEAT
  :: atomic { ANSWERS -> goto again }
#else
  :: atomic { ANSWERS && state == running && claim == c && up[me] && !out[me] -> r = round; TOLD;
#ifdef AHEAD
       if :: busy[me] -> goto hold :: else fi;
#endif
       runs_now(); goto work }
  :: atomic { ANSWERS && !(state == running && claim == c && up[me] && !out[me]) -> goto again }
#endif
  od;
#endif
#ifdef AHEAD
hold:
  if
#ifdef CRASH
  :: atomic { crashes < 1 -> crashes++; up[me] = 0; goto again }
#endif
#ifdef NOORDER
  :: atomic { busy[me] -> busy[me] = 0; goto hold }                   /* reports what was in the slot */
#endif
  :: atomic { INTIME -> runs_now(); goto other }
  :: atomic { backs < 1 -> backs++; gave = 1; goto handback }
  :: out[me] -> goto again                                            /* drops it */
  fi;
handback:
  if
#ifdef NOFORGET
  :: atomic { INTIME -> runs_now(); goto other }
#endif
#ifdef CRASH
  :: atomic { crashes < 1 -> crashes++; up[me] = 0; goto again }
#endif
  :: atomic { ANSWERS && GIVEN -> change(); state = open; round++; claim = 0; accepted = 0; early = 0; begun = 0; busy[me] = 0;
       if :: skip :: goto handback fi }                                   /* the answer is lost */
  :: atomic { ANSWERS && !GIVEN -> skip }
  fi;
  goto again;
other:
  if
#ifdef CRASH
  :: atomic { crashes < 1 -> crashes++; up[me] = 0; runs[me] = 0; goto again }
#endif
  :: busy[me] = 0                                                     /* reports what was in the slot */
  fi;
#endif
work:
  if
#ifdef CRASH
  :: atomic { crashes < 1 -> crashes++; up[me] = 0; runs[me] = 0; goto again }
#endif
  :: atomic { runs[me] = 0; failed = 0 }
  :: atomic { runs[me] = 0; failed = 1 }
  fi;
report:
  if
  :: atomic { ANSWERS && MINE ->
       if :: claim != c || round != r || when[c] != epoch -> stale = 1 :: else fi;
#ifdef SETTLE
       if
       :: SETTLES -> settles()
       :: change(); accepted++; bad = failed; state = executed        /* or leaves that to a server */
       fi;
#else
       change(); accepted++; bad = failed; state = executed;
#endif
       if :: accepted > 1 -> twice = 1 :: else fi;
       if :: skip :: goto report fi }                                 /* the answer is lost */
  :: atomic { ANSWERS && !MINE -> skip }                              /* done before, or no longer its own */
  fi;
  goto again;
end: skip
}

/* What a server decides it has read before: under that revision, in that epoch. */
#if defined(NOREV) || defined(ORIG)
#define SAME true
#elif defined(NOGATE)
#define SAME (rev == v)
#else
#define SAME (rev == v && e == epoch)
#endif

#if defined(NOLEASE) || defined(ORIG)
#define OVER true
#else
#define OVER (out[who[claim]])
#endif

#if defined(NORELEASE) || defined(CHARGE)
#define VOID false
#else
#define VOID (when[claim] != epoch)
#endif

/* A server sorts what a lost worker holds by the order of the claims: the slot is that
   of the first. */
#if defined(AHEAD) && !defined(NOSORT)
#define UNBEGUN (busy[who[claim]])
#else
#define UNBEGUN false
#endif

#ifdef NORELEASE
#define FORMER (when[claim] != epoch)
#else
#define FORMER false
#endif

#ifdef NOJUMP
#define JUMP 0
#else
#define JUMP 4
#endif
inline opens() { atomic { unseen -> unseen = 0; epoch = 1; id = id + JUMP } }

proctype Server() {
  byte v; bit e, b;
again:
  v = 0; e = 0; b = 0;
  do
  :: FINAL -> break
  :: atomic { state == executed -> v = rev; e = epoch; b = bad };     /* reads the report, */
     if
     :: atomic { ANSWERS ->                                           /* judges it */
          if
          :: state == executed && SAME ->
             change(); state = ended; verdict = b;
             if :: b != bad -> misjudged = 1 :: else fi
          :: else
          fi }
     :: opens()                                                       /* is refused, and looks again */
     fi;
     goto again
  :: atomic { state == running && !FORMER && (OVER || VOID) && losses <= MOST -> v = rev; e = epoch; b = VOID || UNBEGUN };
     if
     :: atomic { ANSWERS ->                                           /* takes it from its worker */
          if
          :: state == running && SAME ->
             if :: when[claim] != epoch && !b -> paid = 1 :: else fi;
#ifdef AHEAD
             if :: early && !begun && !b -> charged = 1 :: else fi;
#endif
             change();
             if :: b :: else -> losses++ fi;
             if :: losses > MOST -> state = ended; verdict = 0 :: else -> state = open; round++ fi;
             claim = 0; accepted = 0;
#ifdef AHEAD
             early = 0; begun = 0
#endif
          :: else
          fi }
     :: opens()
     fi;
     goto again
#ifdef LOSS
  :: opens()
#endif
  od
}

/* Time: leases run out, of the dead sooner or later, of the living if they pause.
   What runs under a lease was stopped by the worker itself before. */
active proctype Time() {
  do
  :: FINAL -> break
  :: atomic { !up[0] && !out[0] -> out[0] = 1 }
  :: atomic { !up[1] && !out[1] -> out[1] = 1 }
#ifdef PAUSE
  :: atomic { pauses < 1 && state == running && up[who[claim]] && !out[who[claim]] -> pauses++; out[who[claim]] = 1;
#ifndef NODEADMAN
       runs[who[claim]] = 0
#endif
     }
  :: atomic { pauses < 1 && owner != NONE && !mout[owner] -> pauses++; mout[owner] = 1;
#ifndef NOSTOP
       handles[owner] = 0
#endif
     }
#endif
#ifdef LOSS
  :: atomic { !back && kept[0].there -> restore(kept[0]) }
  :: atomic { !back && kept[1].there -> restore(kept[1]) }
#endif
  od
}

#ifdef NOHANDLING
#define FREE true
#else
#define FREE (owner == NONE || owner == me || mout[owner])
#endif
#if defined(HANDLE) && !defined(NOHOLDER)
#define GRANTED (rev == g && owner == me)
#elif defined(NOREV)
#define GRANTED true
#else
#define GRANTED (rev == g)
#endif

proctype Manager(byte me) {
  byte g;
again:
  g = 0;
  do
  :: FINAL -> goto end
  :: atomic { state == absent && ANSWERS ->
       change(); id++; state = open;
       if :: id == gone -> reused = 1 :: else fi }
#ifdef SETTLE
  :: atomic { state == running && ANSWERS && !asked -> change(); asked = 1 }
#endif
#ifdef HANDLE
  :: atomic { mout[me] -> mout[me] = 0; if :: owner == me -> owner = NONE :: else fi }
  :: atomic { state == ended && ANSWERS && !mout[me] && FREE ->
       owner = me;                                                     /* the task is as it was */
       if
       :: g = rev; handles[me] = 1; if :: handles[1-me] -> crowded = 1 :: else fi
       :: silences < 2 -> silences++; goto again                      /* the answer is lost */
       fi };
     break
#else
  :: atomic { state == ended -> g = rev; handledOnce = 1 };
     goto archive
#endif
  od;
#ifdef HANDLE
  if
#ifdef CRASH
  :: atomic { crashes < 1 -> crashes++; handles[me] = 0; mout[me] = 1; goto again }
#endif
#ifndef NOSTOP
  :: atomic { !handles[me] -> goto again }                            /* was stopped */
#endif
#ifdef UNTOLD
  :: handles[me] -> goto archive
#endif
  :: atomic { handles[me] -> handles[me] = 0; handledOnce = 1 }
  fi;
#endif
archive:
  if
  :: atomic { ANSWERS && state == ended && GRANTED ->
       if :: !handledOnce -> unhandled = 1 :: else fi;
       if :: handles[1-me] -> crowded = 1 :: else fi;
       change(); done++; state = archived; handles[me] = 0;
       if :: skip :: silences < 2 -> silences++; goto archive fi }    /* the answer is lost */
  :: atomic { ANSWERS && !(state == ended && GRANTED) ->
#ifdef NOENDED
       if :: state == archived -> done++ :: else fi;
#endif
       handles[me] = 0 }
  fi;
  goto again;
end: skip
}

#ifdef LIVE
/* A standstill is a run without end, in which nothing else happens. */
active proctype Idle() { do :: skip; skip od }
#endif

init {
  atomic {
    run Worker(0); run Worker(1);
    run Server();
#ifdef TWO
    run Server();
#endif
    run Manager(0); run Manager(1)
  }
}

ltl nostale    { [] !stale }
ltl notwice    { [] !twice }
ltl notlost    { [] !stranded }
ltl once       { [] (done <= 1) }
ltl noverlap   { [] !overlap }
ltl judged     { [] !misjudged }
ltl free       { [] !paid }
ltl newids     { [] !reused }
ltl onehandler { [] !crowded }
ltl settled    { [] !overruled }
ltl spared     { [] !charged }
ltl begunonce  { [] !anew }
ltl handled    { [] !unhandled }
ltl ends       { <> [] (state == archived) }
