/* gate.pml: hold, release, escalate, restart, as broker/, task/ and walk.c do
 * it, small enough that Spin visits every state there is.
 *
 *     loop    handlers, each one atomic step: one thread runs them all. They
 *             read memory, decide, and submit a tx with the version they saw.
 *     store   commits one tx as one atomic step, in the order of submission,
 *             if the row still has that version. The loop hears of it later.
 *     world   agents die and come back, an event happens, time passes, people
 *             decide and cancel, the server is killed: at any moment.
 *
 * What is in rows[] and event outlives a crash. What is in memory[], at the
 * store's door or on the way back from it does not.
 *
 * Everything that the world may do is counted, and nothing is tried again
 * without something having changed, so that every run ends: spin_test.py has
 * Spin look for one that does not (non-progress cycles). At its end each
 * message must be over (`last_look`): that is "nothing is lost", "no deadlock"
 * and "no one is forgotten" at once, and needs no fairness.
 *
 * -DSCENE_… says what a run is made of, -DBUG_… plants a mistake. The names
 * of states are those of src/model/task.h and src/model/agent.h; the test
 * looks. */

mtype:status = { accepted, held, escalated, dropped, queued, dispatched,
    working, input_required, completed, failed, cancelled, expired }
mtype:state = { ACTIVE, IDLE, BUSY, SLOW, ERROR, DEAD }
mtype:asked = { none, open, approved, rejected, redirected, resolved }

/* Agents: the safety gate's, the target, and who stands in for the target. */
#define Z 0
#define RICK 1
#define BACKUP 2
#define N_AGENTS 3

/* What a message is like. */
#define GATED 1         /* of a kind that a safety gate is about */
#define NEEDS_EVENT 2   /* has a prerequisite */
#define NEEDS_PERSON 4  /* a rule escalates it */
#define REPEAT 8        /* was there already */
#define OTHER_KEY 16    /* not in the order of the others */

/* What a hold waits for. */
#define AGENT_Z 1
#define AGENT_RICK 2
#define QUEUE 4
#define EVENT 8
#define TIME 16

/* The scenes. Each has what it is about, and a crash. */
#if defined(SCENE_GATE)
/* A gated message with a prerequisite, one behind it, one of another order:
 * the gate's agent dies. */
#define N 3
#define TRAITS(m) (m == 0 -> GATED | NEEDS_EVENT : \
    (m == 1 -> GATED : OTHER_KEY | REPEAT))
#define EVENTS 1
#define ROOM 3
#define DEATHS_Z DEATHS
#define DEATHS_RICK 0
#define N_PEOPLE 0
#define CANCELS 0
#elif defined(SCENE_PEOPLE)
/* What a rule escalates, and two people who decide, while one cancels and the
 * gate's agent dies. */
#define N 2
#define TRAITS(m) (m == 0 -> GATED | NEEDS_PERSON : 0)
#define ROOM 2
#define DEATHS_Z 1
#define DEATHS_RICK 0
#define N_PEOPLE 2
#define CANCELS 1
#elif defined(SCENE_DEAD)
/* The target dies: escalated, restarted, given to another, or a person is
 * first. */
#define N 2
#define TRAITS(m) 0
#define ROOM 2
#define DEATHS_Z 0
#define DEATHS_RICK DEATHS
#define N_PEOPLE 1
#define CANCELS 0
#elif defined(SCENE_ROOM)
/* Two orders at a target that takes one at a time; the first has a
 * prerequisite, so that what is behind it is let go before it is. */
#define N 3
#define TRAITS(m) (m == 0 -> NEEDS_EVENT : (m == 1 -> 0 : OTHER_KEY))
#define EVENTS 1
#define ROOM 1
#define DEATHS_Z 0
#define DEATHS_RICK 0
#define N_PEOPLE 0
#define CANCELS 1
#elif defined(SCENE_TIME)
/* Holds and tasks whose time is over. */
#define N 2
#define TRAITS(m) (m == 0 -> GATED | NEEDS_EVENT : NEEDS_EVENT)
#define EVENTS 1
#define ROOM 2
#define DEATHS_Z 1
#define DEATHS_RICK 0
#define N_PEOPLE 1
#define CANCELS 0
#define HAS_TIME
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef EVENTS
#define EVENTS 0
#endif
#define ATTEMPTS 2 /* to restart an agent, in one life of the server */
#define HAS(m, t) ((TRAITS(m) & (t)) != 0)
#define SAME_ORDER(a, b) (HAS(a, OTHER_KEY) == HAS(b, OTHER_KEY))

/* On the disk. */
typedef row {
    mtype:status status;  /* zero: there is no such row */
    byte version;
    byte keys;            /* of its hold, or of an escalation that an agent's
                           * return resolves; zero: there are none */
    mtype:asked asked;    /* its escalation */
    bit is_approved;
    byte target
}
row rows[N];
bit event;

/* In memory. Target and escalation are read in the row: where that is newer
 * than memory, the version refuses what follows from it. */
typedef entry {
    mtype:status status;
    byte version;
    byte keys;
    bit is_to_look;  /* someone will */
    bit is_moving;   /* a look, a result or an expiry of ours is on its way */
    bit is_claiming  /* and will take room at the target */
}
entry memory[N];
bit is_event_known;
mtype:state seen[N_AGENTS];  /* when we last looked */
byte tries[N_AGENTS];        /* to restart it */
byte next;                   /* message to be sent */

/* The world. */
mtype:state agent[N_AGENTS];
byte deaths[N_AGENTS];
bit is_event_sent;
bit is_asking[3];
byte cancels = CANCELS;
byte crashes = CRASHES;
#ifdef HAS_TIME
byte hours = DEATHS; /* how often it is too late for something */
#endif

/* What must hold, kept beside. */
bit acknowledged[N];
bit is_unsafe[N];     /* let go by who saw the gate's agent DEAD */

#define OURS 0 /* by: 1 and 2 are people, CALLER who sends or cancels */
#define CALLER 3
#define THE_EVENT 9 /* not a message: the event happens */
#define NO_VERSION 99 /* of what is over */
#define AT_ONCE 3
/*                      message, version, to, keys, asked, target, by, unsafe */
chan to_disk = [AT_ONCE] of { byte, byte, mtype:status, byte, mtype:asked,
    byte, byte, bit }
chan from_disk = [AT_ONCE] of { byte, byte, mtype:status, byte, mtype:asked,
    byte, byte, bit }
#define has_way (len(to_disk) + len(from_disk) < AT_ONCE)

#define is_over(s) (s == dropped || s == completed || s == failed || \
    s == cancelled || s == expired)
#define waits(s) (s == held || s == escalated)
#define is_carried(s) (s == dispatched || s == working)
#define is_up(a) (agent[a] != DEAD && agent[a] != ERROR)
#define agent_key(a) (a == Z -> AGENT_Z : (a == RICK -> AGENT_RICK : 0))

/* Scratch of one step; no part of the state. */
hidden byte i, j, m, version, target, by, load, keys, new_keys;
hidden mtype:status to, answer;
hidden mtype:asked word;
hidden byte ok, unsafe, is_behind;

/* Who waits for this key is to be looked at. */
inline mark(key)
{
    for (i : 0 .. N - 1) {
        if
        :: waits(memory[i].status) && (memory[i].keys & (key)) != 0 ->
            memory[i].is_to_look = 1
        :: else
        fi
    }
}

/* Someone has seen how agent a is now: who waits for it hears of a change.
 * Decisions see it too. If looking now and then were all, an agent that dies
 * and is back between two looks would be missed by what was held meanwhile. */
inline notice(n_a)
{
#ifndef BUG_DECISION_NOTES_NOTHING
    if
    :: seen[n_a] != agent[n_a] -> seen[n_a] = agent[n_a]; mark(agent_key(n_a))
    :: else
    fi
#else
    skip
#endif
}

/* What stands at the target or is on its way there. What stands behind one
 * that waits does not count: it cannot go before that one, which would
 * otherwise wait for it. */
inline measure(m_who, m_at)
{
    load = 0;
    for (i : 0 .. N - 1) {
        is_behind = 0;
#ifndef BUG_COUNT_ALL
        for (j : 0 .. N - 1) {
            if
            :: j < i && SAME_ORDER(i, j) && waits(memory[j].status) ->
                is_behind = 1
            :: else
            fi
        }
#endif
        if
        :: i != m_who && !is_behind && rows[i].target == m_at &&
           (memory[i].is_claiming || memory[i].status == queued ||
            is_carried(memory[i].status)) -> load++
        :: else
        fi
    }
}

/* The gate: answer and new_keys for message `who` at `at`. A decision notes
 * how the agents were that it made a key of. */
inline decide(d_who, d_at, d_first, d_approved)
{
    measure(d_who, d_at);
    new_keys = 0;
    if
    :: d_first && HAS(d_who, REPEAT) -> answer = dropped
    :: else ->
        if
        :: HAS(d_who, GATED) && !is_up(Z) ->
            answer = held; new_keys = AGENT_Z; notice(Z)
        :: else ->
            if
            :: HAS(d_who, NEEDS_PERSON) && !d_approved -> answer = escalated
            :: else ->
                if
                :: agent[d_at] == DEAD ->
                    answer = (d_approved -> held : escalated);
                    new_keys = agent_key(d_at); notice(d_at)
                :: else ->
                    if
                    :: HAS(d_who, NEEDS_EVENT) && !is_event_known &&
                       !d_approved -> answer = held; new_keys = EVENT
                    :: else ->
                        if
                        :: agent[d_at] == ERROR ->
                            answer = held; new_keys = agent_key(d_at);
                            notice(d_at)
                        :: agent[d_at] != ERROR && load >= ROOM ->
                            answer = held; new_keys = QUEUE
                        :: else -> answer = queued
                        fi
                    fi
                fi
            fi
        fi
    fi;
#ifdef HAS_TIME
    new_keys = (answer == held -> new_keys | TIME : new_keys);
#endif
    skip
}

/* What becomes of its escalation when it moves to s by itself. */
#define question(who, s) (s == escalated -> open : \
    (memory[who].status == escalated -> resolved : none))

inline submit(s_who, s_to, s_keys, s_word, s_at, s_by)
{
    memory[s_who].is_claiming = memory[s_who].is_claiming || (s_to == queued);
    memory[s_who].is_moving = memory[s_who].is_moving || (s_by == OURS);
    unsafe = (s_to == queued && HAS(s_who, GATED) && agent[Z] == DEAD);
    to_disk!s_who,memory[s_who].version,s_to,s_keys,s_word,s_at,s_by,unsafe
}

/* A held one, or one whose target was DEAD, is asked about again. */
inline look(l_who)
{
    memory[l_who].is_to_look = 0;
    decide(l_who, rows[l_who].target, 0, rows[l_who].is_approved);
    if
    :: answer == memory[l_who].status &&
       (new_keys | TIME) == (memory[l_who].keys | TIME) -> skip
    :: else ->
        submit(l_who, answer, new_keys,
            question(l_who, answer), rows[l_who].target, OURS)
    fi
}

/* A start: what the rows say, and every hold is looked at once. */
inline start()
{
    for (i : 0 .. N - 1) {
        memory[i].status = rows[i].status;
        memory[i].version = rows[i].version;
        memory[i].keys = rows[i].keys;
        memory[i].is_to_look = (rows[i].keys != 0);
#ifdef BUG_START_FORGETS
        memory[i].is_to_look = 0;
#endif
        memory[i].is_moving = 0;
        memory[i].is_claiming = 0
    }
    is_event_known = event;
    for (i : 0 .. N_AGENTS - 1) {
        seen[i] = agent[i];
        tries[i] = 0
    }
}

/* What was on its way to an agent that died waits again. */
inline drop_work(w_a)
{
    for (i : 0 .. N - 1) {
        if
        :: is_carried(memory[i].status) && rows[i].target == w_a &&
           !memory[i].is_moving -> memory[i].status = queued
        :: else
        fi
    }
}

/* Loop: messages come in, in order; who is not answered asks again. */
proctype sender()
{
end:
    do
    :: atomic {
        next < N && rows[next].status != 0 && memory[next].status != accepted ->
            acknowledged[next] = 1; next++ /* the answer is that of then */
        }
    :: atomic {
        next < N && rows[next].status == 0 && has_way ->
            m = next; next++;
            decide(m, RICK, 1, 0);
            memory[m].status = accepted;
            memory[m].version = 0;
            submit(m, answer, new_keys, (answer == escalated -> open : none),
                RICK, CALLER);
#ifdef BUG_ANSWER_FIRST
            acknowledged[m] = 1
#endif
        }
    od
}

/* The store's thread. */
inline apply()
{
    assert(!is_over(rows[m].status)); /* over is over */
    assert(!(waits(to) && is_carried(memory[m].status)));
    rows[m].status = to;
    rows[m].version = version + 1;
    rows[m].keys = keys;
    rows[m].target = target;
    if
    :: word == none -> skip
    :: word == open -> rows[m].asked = open
    :: else ->
        assert(rows[m].asked == open); /* decided once */
        rows[m].asked = word;
        rows[m].is_approved = rows[m].is_approved ||
            word == approved || word == redirected
    fi;
    is_unsafe[m] = unsafe;
    if
    :: is_over(to) -> /* nothing of this matters any more */
        rows[m].version = NO_VERSION;
        rows[m].is_approved = 0;
        rows[m].target = RICK;
        if
        :: rows[m].asked != open -> rows[m].asked = none
        :: else
        fi
    :: else
    fi
}

proctype store()
{
end:
    do
    :: atomic {
        to_disk?m,version,to,keys,word,target,by,unsafe ->
        ok = 1;
        if
        :: m == THE_EVENT -> event = 1
        :: m != THE_EVENT && rows[m].version == version -> apply()
#ifdef BUG_NO_GUARD
        :: m != THE_EVENT && rows[m].version != version &&
           (word == approved || word == rejected || word == redirected) ->
            apply()
#endif
        :: else -> ok = 0
        fi;
        from_disk!m,version,to,keys,word,target,by,ok
        }
    od
}

/* Loop: the store has said what became of it. Only now memory changes. */
inline settle()
{
    if
    :: ok ->
        memory[m].status = to;
        memory[m].version = (is_over(to) -> NO_VERSION : version + 1);
        memory[m].keys = keys;
#ifndef BUG_NO_SECOND_LOOK
        memory[m].is_to_look = (keys != 0);
#endif
        if
        :: version == 0 -> acknowledged[m] = 1
        :: else
        fi
    :: else
    fi;
    if
    :: by == OURS -> memory[m].is_moving = 0
    :: else
    fi;
    if
    :: is_over(to) || !ok || target != RICK ->
        mark(QUEUE) /* there may be room */
    :: else
    fi;
    memory[m].is_claiming = 0
}

proctype heard()
{
end:
    do
    :: atomic {
        from_disk?m,version,to,keys,word,target,by,ok ->
        if
        :: m == THE_EVENT -> is_event_known = 1; mark(EVENT)
        :: else ->
            if
            :: by == 1 || by == 2 -> is_asking[by] = 0
            :: else
            fi;
            settle()
        fi
        }
    od
}

/* Loop: how agents are that someone waits for, now and then. */
#define is_awaited(a, m) (waits(memory[m].status) && \
    (memory[m].keys & agent_key(a)) != 0)
#if N == 2
#define somebody_awaits(a) (is_awaited(a, 0) || is_awaited(a, 1))
#else
#define somebody_awaits(a) \
    (is_awaited(a, 0) || is_awaited(a, 1) || is_awaited(a, 2))
#endif

/* What no one waits for is not looked at; fewer states, that is all. */
inline forget_seen(f_a)
{
#ifndef BUG_DECISION_NOTES_NOTHING
    if
    :: !somebody_awaits(f_a) -> seen[f_a] = agent[f_a]
    :: else
    fi
#else
    skip
#endif
}

inline is_back(b_a)
{
    agent[b_a] = IDLE;
    tries[b_a] = 0;
    forget_seen(b_a)
}

/* One agent of the world, and what is done to have it back. */
proctype life(byte a)
{
end:
    do
    :: atomic { /* a look */
        seen[a] != agent[a] && somebody_awaits(a) ->
            seen[a] = agent[a]; mark(agent_key(a))
        }
    :: atomic { /* a restart, by command or wake-up */
        agent[a] == DEAD && somebody_awaits(a) && tries[a] < ATTEMPTS ->
            tries[a]++;
            if
            :: is_back(a)
            :: true
            fi
        }
    :: atomic {
        is_up(a) && deaths[a] > 0 ->
            deaths[a]--;
            if
            :: agent[a] = DEAD; drop_work(a)
            :: agent[a] = ERROR
            fi;
            forget_seen(a)
        }
    :: atomic { !is_up(a) -> is_back(a) }
    od
}

/* Who was first in its order: no one before it that is not over. */
#define is_before(j, m) (j < m && SAME_ORDER(j, m) && \
    memory[j].status != 0 && !is_over(memory[j].status))
#ifdef BUG_OVERTAKE
#define blocks(j, m) (is_before(j, m) && !waits(memory[j].status))
#else
#define blocks(j, m) is_before(j, m)
#endif
#if N == 2
#define is_first(m) !blocks(0, m)
#define is_in_order(m) !is_before(0, m)
#else
#define is_first(m) (!blocks(0, m) && !blocks(1, m))
#define is_in_order(m) (!is_before(0, m) && !is_before(1, m))
#endif

/* Loop: one message after its acceptance. */
proctype walk(byte me)
{
end:
    do
    :: atomic {
        memory[me].is_to_look && has_way && !memory[me].is_moving &&
        waits(memory[me].status) -> look(me)
        }
    :: atomic { /* the attempts are over: who stands in gets it */
        memory[me].status == escalated && memory[me].keys != 0 && has_way &&
        !memory[me].is_moving && agent[RICK] == DEAD &&
        tries[RICK] == ATTEMPTS && rows[me].target == RICK ->
            decide(me, BACKUP, 0, 1);
            submit(me, answer, new_keys, redirected, BACKUP, OURS)
        }
    :: atomic {
        memory[me].status == queued && agent[rows[me].target] != DEAD &&
        is_first(me) ->
            assert(!waits(rows[me].status)); /* never delivered and held */
            assert(is_in_order(me));
            assert(!is_unsafe[me]);
            memory[me].status = dispatched
        }
    :: atomic { memory[me].status == dispatched -> memory[me].status = working }
    :: atomic {
        memory[me].status == working && !memory[me].is_moving && has_way ->
            if
            :: submit(me, completed, 0, none, rows[me].target, OURS)
#ifdef SCENE_GATE
            :: submit(me, failed, 0, none, rows[me].target, OURS)
#endif
            fi
        }
#ifdef HAS_TIME
    :: atomic { /* on_expiry: expire, escalate or route */
        hours > 0 && memory[me].status == held &&
        (memory[me].keys & TIME) != 0 && !memory[me].is_moving && has_way ->
            hours--;
            if
            :: submit(me, expired, 0, none, rows[me].target, OURS)
            :: submit(me, escalated, 0, open, rows[me].target, OURS)
            :: decide(me, rows[me].target, 0, 1);
               new_keys = new_keys & ~TIME;
               if
               :: answer == held && new_keys == (memory[me].keys & ~TIME)
               :: else -> submit(me, answer, new_keys, none, rows[me].target,
                    OURS)
               fi
            fi
        }
    :: atomic { /* its deadline, which runs since it was let go */
        hours > 0 &&
        (memory[me].status == queued || is_carried(memory[me].status)) &&
        !memory[me].is_moving && has_way ->
            hours--;
            submit(me, expired, 0, none, rows[me].target, OURS)
        }
#endif
    :: atomic { /* someone does not want it any more */
        cancels > 0 && memory[me].version > 0 && !is_over(memory[me].status) &&
        has_way ->
            cancels--;
            submit(me, cancelled, 0, question(me, cancelled), rows[me].target,
                CALLER)
        }
    od
}

/* Who decides. The first to be committed counts. */
proctype person(byte who; byte about)
{
end:
    do
    :: atomic {
        !is_asking[who] && has_way && rows[about].asked == open &&
        memory[about].status == escalated ->
            is_asking[who] = 1;
            if
            :: decide(about, rows[about].target, 0, 1);
#ifdef BUG_APPROVED_SKIPS_GATE
               answer = queued; new_keys = 0;
#endif
               submit(about, answer, new_keys, approved, rows[about].target,
                    who)
            :: submit(about, cancelled, 0, rejected, rows[about].target, who)
            :: decide(about, BACKUP, 0, 1);
               submit(about, answer, new_keys, redirected, BACKUP, who)
            fi
        }
    od
}

/* The prerequisite; killing the server; and the end of it all. */
init
{
    atomic {
        for (i : 0 .. N_AGENTS - 1) {
            agent[i] = IDLE;
            seen[i] = IDLE
        }
        for (i : 0 .. N - 1) {
            rows[i].target = RICK;
            rows[i].asked = none
        }
        deaths[Z] = DEATHS_Z;
        deaths[RICK] = DEATHS_RICK;
        run sender();
        run store();
        run heard();
        for (m : 0 .. N - 1) {
            run walk(m)
        }
        run life(Z);
        run life(RICK);
#if N_PEOPLE > 0
        run person(1, 0);
        run person(1, 1);
#endif
#if N_PEOPLE > 1
        run person(2, 0);
        run person(2, 1);
#endif
        m = 0; i = 0; j = 0
    }
    do
    :: atomic {
        EVENTS > 0 && !is_event_sent && has_way ->
            is_event_sent = 1;
            to_disk!THE_EVENT,0,0,0,0,0,CALLER,0
        }
    :: atomic {
        crashes > 0 -> crashes--;
        do
        :: nempty(to_disk) -> to_disk?m,_,_,_,_,_,_,_;
            if
            :: m == THE_EVENT -> is_event_sent = 0
            :: else
            fi
        :: nempty(from_disk) -> from_disk?_,_,_,_,_,_,_,_
        :: empty(to_disk) && empty(from_disk) -> break
        od;
        is_asking[1] = 0; is_asking[2] = 0;
        start();
        next = 0;
        do
        :: next < N && acknowledged[next] ->
            assert(rows[next].status != 0); /* it was told to be kept */
            next++
        :: else -> break
        od
        }
    :: timeout -> break
    od;
last_look:
    atomic {
        for (i : 0 .. N - 1) {
            assert(acknowledged[i] && is_over(rows[i].status));
            assert(rows[i].asked != open && rows[i].keys == 0)
        }
    }
}
