/* delegation.pml: one agent has another do something, in two phases, as hire/,
 * hub/ and walk.c do it, small enough that Spin visits every state there is.
 *
 *     requester  asks (agent.send_task), hears that it is accepted, hears the
 *                result, says that it has it (delegation.ack). After a
 *                reconnect it registers, and asks again for whatever it has no
 *                result of, with the same id.
 *     loop       the server's handlers, each one atomic step. They read memory
 *                and submit writes; memory changes when they are committed.
 *     store      commits one write as one atomic step, in order. The loop hears
 *                of it later.
 *     target     does what it is given, each attempt with another outcome. One
 *                that was cut off may still come with what it did meanwhile.
 *     world      lines break, the server is killed: at any moment.
 *
 * A message is lost only with its line. What is in rows[] outlives a crash;
 * memory[], what is at the store's door, and all lines do not.
 *
 * Everything that the world may do is counted, so that every run ends (Spin
 * looks for one that does not), and at its end (`last_look`) the requester must
 * have one result of each delegation: that is "none is lost" and needs no
 * fairness. What it must never see is asserted where it would see it.
 *
 * -DSCENE_… says what a run is made of, -DBUG_… plants a mistake. The names of
 * states are those of src/model/delegation.h; the test looks. */

mtype:state = { open, ready, had }
mtype:word = { register, send_task, accepted, result, ack, acked }
mtype:write = { create, finish, fetch }

#ifndef CRASHES
#define CRASHES 1
#endif

#if defined(SCENE_LINES)
/* Both lines break, and the server is killed. */
#define N 1
#ifndef LOST
#define LOST 2
#endif
#define DEATHS 1
#elif defined(SCENE_TWO)
/* Two at once: what is said of one is not said of the other. */
#define N 2
#ifndef LOST
#define LOST 0 /* but for the crash */
#endif
#define DEATHS 0
#elif defined(SCENE_CANCEL)
/* onDisconnect "cancel": the requester's line takes the work with it, while the
 * target may have done it. */
#define N 1
#ifndef LOST
#define LOST 2
#endif
#define DEATHS 1
#define ENDS_WITH_LINE
#endif

#define T (N + 1) /* tasks: one more than there may be */
#define NONE 15
#define CANCELLED 14 /* a result; others are the number of the attempt */

typedef row {
    mtype:state state; /* zero: there is none */
    byte about, value
}
row rows[T];

typedef hire {
    mtype:state state;
    byte about, value;
    bit is_claimed; /* it is on its way to the disk for the first time */
    bit is_asked;   /* who asked waits for the answer */
    bit is_to_tell;
    bit is_acking;
    bit is_given;   /* to the target */
    bit is_unwanted /* it ends with its line */
}
hire memory[T];

bit line, is_registered; /* the requester's */
bit road;                /* the target's */
byte lost = LOST, deaths = DEATHS, crashes = CRASHES;

chan up = [N + 2] of { mtype:word, byte };
chan down = [N + 2] of { mtype:word, byte, byte, byte };
chan to_target = [T] of { byte, byte };
chan from_target = [T] of { byte, byte };
chan to_disk = [T] of { mtype:write, byte, byte, byte };
chan from_disk = [1] of { mtype:write, byte, byte, byte, bit };

/* What the requester knows; and what the target has done. */
byte known[N], taken[N]; /* the task and the result of each; zero: none yet */
bit is_acked[N];
byte done[T];
byte attempt[T]; /* larger than any before, over restarts too (task.h) */

#define is_there(t) (memory[t].is_claimed || memory[t].state == open || \
    memory[t].state == ready)
/* Mistakes: a request that is kept and yet not known again. */
#if defined(BUG_CLAIM_IS_NOT_SEEN)
#define is_missed(t) memory[t].is_claimed
#elif defined(BUG_START_FORGETS_IDS)
#define is_missed(t) (crashes < CRASHES)
#else
#define is_missed(t) 0
#endif

#define has_way (nfull(to_disk) && nfull(down))

hidden byte i, it, id, what, task, ok, is_found;
hidden mtype:write w;

inline forget(f)
{
    memory[f].value = 0;
    memory[f].is_claimed = 0;
    memory[f].is_asked = 0;
    memory[f].is_to_tell = 0;
    memory[f].is_acking = 0;
    memory[f].is_given = 0;
    memory[f].is_unwanted = 0
}

/* Said on the requester's line. Neither of the two acknowledgements comes
 * before what it acknowledges is on the disk. */
inline say_accepted(s_t)
{
    assert(rows[s_t].state != 0); /* accepted is stored */
    down!accepted(memory[s_t].about, s_t + 1, 0)
}

inline say_acked(s_t)
{
    assert(rows[s_t].state == had); /* acked is stored */
    down!acked(memory[s_t].about, s_t + 1, 0)
}

/* The requester. */

inline ask_again()
{
    for (i : 0 .. N - 1) {
        if
        :: taken[i] == 0 && known[i] == 0 -> up!send_task(i)
        :: taken[i] == 0 && known[i] != 0 -> up!send_task(i)
        :: taken[i] == 0 && known[i] != 0 -> skip /* it was accepted */
        :: taken[i] != 0
        fi
    }
}

proctype requester()
{
end:
    do
    :: atomic { !line -> line = 1; up!register(0); ask_again() }
    :: atomic {
        down?accepted(id, task, _) ->
            assert(known[id] == 0 || known[id] == task); /* one task for an id */
            known[id] = task
        }
    :: atomic {
        nfull(up) && down?[result(id, task, what)] ->
            down?result(id, task, what);
            assert(!is_acked[id]); /* never told again */
            assert(taken[id] == 0 || taken[id] == what); /* one result for an id */
            taken[id] = what;
            up!ack(task - 1)
        }
    :: atomic { down?acked(id, _, _) -> is_acked[id] = 1 }
    od
}

/* Loop: what comes from the requester. */

/* The very same request that is kept already is answered by what it was; one
 * that is on its way to the disk, when it has arrived. */
inline find_request(f_a)
{
    is_found = 0;
#ifndef BUG_SECOND_TASK
    for (i : 0 .. T - 1) {
        if
        :: is_there(i) && memory[i].about == f_a && !is_missed(i) ->
            is_found = 1; it = i
        :: else
        fi
    }
#endif
    skip
}

inline begin_task(b_a)
{
    it = NONE;
    for (i : 0 .. T - 1) {
        if
        :: it == NONE && rows[i].state == 0 && !memory[i].is_claimed -> it = i
        :: else
        fi
    }
    if
    :: it != NONE ->
        memory[it].about = b_a;
        memory[it].is_claimed = 1;
#ifdef BUG_ACCEPTED_FIRST
        down!accepted(b_a, it + 1, 0);
#else
        memory[it].is_asked = 1;
#endif
        to_disk!create(it, 0, b_a)
    :: else
    fi
}

inline come()
{
    is_registered = 1;
#ifndef BUG_TOLD_ONCE
    for (i : 0 .. T - 1) {
        memory[i].is_to_tell = (memory[i].state == ready)
    }
#endif
    skip
}

proctype hub()
{
end:
    do
    :: atomic { up?register(_) -> come() }
    :: atomic {
        has_way && up?[send_task(id)] ->
            up?send_task(id);
            find_request(id);
            if
            :: is_found && memory[it].is_claimed -> memory[it].is_asked = 1
            :: is_found && !memory[it].is_claimed -> say_accepted(it)
            :: else -> begin_task(id)
            fi
        }
    :: atomic {
        has_way && up?[ack(it)] ->
            up?ack(it);
            if
            :: memory[it].state == ready ->
                memory[it].is_to_tell = 0;
                memory[it].is_acking = 1;
                to_disk!fetch(it, 0, 0);
#ifdef BUG_ACK_FIRST
                memory[it].state = had;
                down!acked(memory[it].about, it + 1, 0);
                forget(it)
#endif
            :: else
            fi
        }
    od
}

/* Loop: one task, once it is accepted. */
proctype walk(byte me)
{
end:
    do
    :: atomic { /* task.execute */
        memory[me].state == open && !memory[me].is_given && road &&
        nfull(to_target) ->
            memory[me].is_given = 1;
            attempt[me]++;
            to_target!me,attempt[me]
        }
    :: atomic { /* delegation.result */
        memory[me].is_to_tell && line && nfull(down) ->
            memory[me].is_to_tell = 0;
            down!result(memory[me].about, me + 1, memory[me].value)
        }
    :: atomic {
        memory[me].is_unwanted && nfull(to_disk) ->
            memory[me].is_unwanted = 0;
            if
            :: memory[me].state == open -> to_disk!finish(me, CANCELLED, 0)
            :: else
            fi
        }
    od
}

/* Loop: task.result of the target, of whichever attempt, while it is not over.
 * Two ends may be on the way to the disk at once: the first is it. */
proctype results()
{
end:
    do
    :: atomic {
        has_way && nempty(from_target) ->
            from_target?it,what;
            if
            :: memory[it].state == open ->
                to_disk!finish(it, what, 0);
#ifdef BUG_TOLD_FIRST
                if
                :: is_registered -> down!result(memory[it].about, it + 1, what)
                :: else
                fi
#endif
            :: else
            fi
        }
    od
}

/* The store's thread. */
proctype store()
{
end:
    do
    :: atomic {
        nfull(from_disk) && nempty(to_disk) ->
            to_disk?w,it,what,id;
            ok = 1;
            if
            :: w == create -> rows[it].state = open; rows[it].about = id
#ifdef BUG_NO_GUARD
            :: w == finish && rows[it].state != had ->
#else
            :: w == finish && rows[it].state == open ->
#endif
                rows[it].state = ready; rows[it].value = what
            :: w == fetch && rows[it].state == ready -> rows[it].state = had
            :: else -> ok = 0
            fi;
            from_disk!w,it,what,id,ok
        }
    od
}

/* Loop: a write was committed. Only now memory changes. */
inline settle_finish()
{
    memory[it].state = ready;
    memory[it].value = what;
    memory[it].is_given = 0;
    memory[it].is_to_tell = is_registered;
#ifdef BUG_AWAY_IS_HAD
    if
    :: !is_registered ->
        memory[it].state = had; forget(it); rows[it].state = had
    :: else
    fi;
#endif
    skip
}

inline settle_fetch()
{
    if
    :: memory[it].state == ready ->
        memory[it].state = had;
        if
        :: memory[it].is_acking -> say_acked(it)
        :: else
        fi;
        forget(it)
    :: else /* it was said twice */
    fi
}

proctype heard()
{
end:
    do
    :: atomic {
        nfull(down) && nempty(from_disk) ->
            from_disk?w,it,what,id,ok;
            if
            :: w == create ->
                memory[it].is_claimed = 0;
                memory[it].state = open;
                if
                :: memory[it].is_asked -> say_accepted(it)
                :: else
                fi;
                memory[it].is_asked = 0
            :: w == finish && ok -> settle_finish()
            :: w == fetch && ok -> settle_fetch()
            :: else
            fi
        }
    od
}

/* What it did stays done when it is cut off; or it is forgotten. */
proctype target()
{
end:
    do
    :: atomic { to_target?it,what -> done[it] = what }
    :: atomic {
        road && nfull(from_target) && done[0] != 0 ->
            from_target!0,done[0]; done[0] = 0
        }
    :: atomic {
        road && nfull(from_target) && done[1] != 0 ->
            from_target!1,done[1]; done[1] = 0
        }
#if T > 2
    :: atomic {
        road && nfull(from_target) && done[2] != 0 ->
            from_target!2,done[2]; done[2] = 0
        }
#endif
    :: atomic { !road -> road = 1 }
    od
}

/* Lines that break. */
inline lose_line()
{
    line = 0;
    is_registered = 0;
    do
    :: nempty(up) -> up?_,_
    :: nempty(down) -> down?_,_,_,_
    :: empty(up) && empty(down) -> break
    od;
    for (i : 0 .. T - 1) {
        memory[i].is_asked = 0;
        memory[i].is_acking = 0;
        memory[i].is_to_tell = 0;
#ifdef ENDS_WITH_LINE
        memory[i].is_unwanted = (memory[i].state == open)
#endif
    }
}

inline lose_road()
{
    road = 0;
    do
    :: nempty(to_target) -> to_target?_,_
    :: nempty(from_target) -> from_target?_,_
    :: empty(to_target) && empty(from_target) -> break
    od;
    for (i : 0 .. T - 1) {
        memory[i].is_given = 0;
        if
        :: done[i] != 0 -> done[i] = 0
        :: skip
        fi
    }
}

/* What was not on the disk is gone; what is there is taken up. */
inline start()
{
    do
    :: nempty(to_disk) -> to_disk?_,_,_,_
    :: nempty(from_disk) -> from_disk?_,_,_,_,_
    :: empty(to_disk) && empty(from_disk) -> break
    od;
    for (i : 0 .. T - 1) {
        forget(i);
        memory[i].state = rows[i].state;
        memory[i].about = rows[i].about;
        memory[i].value = (rows[i].state == ready -> rows[i].value : 0)
    }
}

init
{
    atomic {
        run requester();
        run hub();
        for (it : 0 .. T - 1) {
            run walk(it)
        }
        run results();
        run store();
        run heard();
        run target();
        it = 0; i = 0
    }
    do
    :: atomic { lost > 0 && line -> lost--; lose_line() }
    :: atomic { deaths > 0 && road -> deaths--; lose_road() }
    :: atomic {
        crashes > 0 -> crashes--;
        lose_line();
        lose_road();
        start()
        }
    :: timeout -> break
    od;
last_look:
    atomic {
        for (i : 0 .. N - 1) {
            assert(taken[i] != 0); /* none is lost */
            task = 0;
            for (it : 0 .. T - 1) {
                if
                :: rows[it].state != 0 && rows[it].about == i ->
                    task++;
                    assert(rows[it].state == had && rows[it].value == taken[i])
                :: else
                fi
            }
            assert(task == 1)
        }
    }
}
