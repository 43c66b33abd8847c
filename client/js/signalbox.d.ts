/** code is for programs, message for people; data is what else was said. */
export class SignalboxError extends Error {
    constructor(code: string, message: string, data?: Record<string, unknown>);
    code: string;
    data: Record<string, unknown>;
}

export interface ConnectOptions {
    /** For the first connection; default 30 000. */
    connectTimeoutMs?: number;
    /** For an answer of the server's; default 30 000. */
    callTimeoutMs?: number;
    /** The first pause before reconnecting, doubled each time; default 250. */
    retryMs?: number;
    /** The longest of them; default 30 000. */
    retryMaxMs?: number;
    /** Silence that means the server is gone, until it says so itself. */
    heartbeatMs?: number;
    /** The largest message that is taken from the server; default 16 MiB. */
    maxMessageBytes?: number;
    /** Calls and results that are not answered yet; default 1000. */
    maxKept?: number;
    /** And their bytes; default 64 MiB. */
    maxKeptBytes?: number;
    /** Certificates to trust with https, in PEM, or a file of them. */
    ca?: string;
    caFile?: string;
    /** Another WebSocket than the one of the runtime. */
    WebSocket?: new (url: string, protocols: string[]) => unknown;
    /** Where lines about lost connections and failed tasks go; null: nowhere. */
    log?: ((line: string) => void) | null;
}

/**
 * What is not given is taken from SIGNALBOX_URL, SIGNALBOX_TOKEN and
 * SIGNALBOX_CA.
 */
export function connect(
    url?: string | URL,
    token?: string,
    options?: ConnectOptions,
): Promise<Hub>;
export function connect(
    options: ConnectOptions & { url?: string | URL; token?: string },
): Promise<Hub>;

/** docs/protocol.md, "The card". */
export interface Card {
    name: string;
    description: string;
    skills?: Record<string, unknown>[];
    [field: string]: unknown;
}

export interface Task {
    readonly id: string;
    readonly turn: number;
    /** One more each time that it was delivered. */
    readonly attempt: number;
    readonly message: string;
    readonly skillId: string | null;
    /** The conversation it belongs to. */
    readonly sessionId: string | null;
    /** When its time is over, in Unix milliseconds. */
    readonly deadlineMs: number | null;
    /** requester, root_user, …; the sender's own are under `user`. */
    readonly metadata: Record<string, unknown>;
    /** As it was sent; null: it was not sent as one. */
    readonly envelope: Envelope | null;
    /** Aborted when the task is cancelled, or its time is over. */
    readonly signal: AbortSignal;
    readonly cancelled: boolean;
    /** All that was written so far. */
    readonly written: string;
    /**
     * Sends a piece of the answer on its way. Resolves when there is room for
     * more; rejects once the task is cancelled.
     */
    write(text: string): Promise<void>;
    /** As Hub.delegate, on behalf of this task: its payer pays. */
    delegate(
        agentName: string,
        skill: string,
        message: string,
        options?: DelegateOptions,
    ): Delegation;
    /** As Hub.send, on behalf of this task: its payer pays. */
    send(text: string, options?: SendOptions): Reply;
    /** As Hub.delegateToAgent, on behalf of this task. */
    delegateToAgent(what: Order, options?: ToolOptions): Promise<Delegated>;
    delegateToAgent(what: Order[], options?: ToolOptions): Promise<Delegated[]>;
}

/** Nothing: what was written is the answer. */
export type Answer =
    | string
    | { text?: string; metadata?: Record<string, unknown> }
    | null
    | undefined
    | void;

export type Handler = (
    task: Task,
) => Answer | Promise<Answer> | AsyncGenerator<string, Answer, void>;

export interface Result {
    task_id: string;
    conversation_id: string;
    agent: string;
    status: string;
    text: string;
    metadata: Record<string, unknown>;
    [field: string]: unknown;
}

/** docs/protocol.md, "POST /api/envelopes". */
export interface Envelope {
    to: string;
    type: string;
    /** Who sends it; default: who you are. */
    from?: string;
    priority?: 'URGENT' | 'HIGH' | 'NORMAL' | 'LOW';
    /** RFC 3339; default: now. */
    timestamp?: string;
    /** What it is about. */
    reference?: string;
    payload?: Record<string, unknown>;
    /** A sentence for people. */
    context?: string;
    /** What it and all that is delegated because of it may cost. */
    max_cost_micros?: number;
    /** The same id is the same message; default: a new one. */
    message_id?: string;
}

export interface SendOptions {
    /** The agent; else one is found for the message. */
    to?: string;
    skill?: string;
    conversation?: string;
    /** A further turn of this task. */
    task?: string;
    priority?: 'URGENT' | 'HIGH' | 'NORMAL' | 'LOW';
    timeoutMs?: number;
    metadata?: Record<string, unknown>;
    /** The same key gives the same task; default: a new one. */
    key?: string;
    /** What it and all that is delegated because of it may cost, in
     * micro-units; default: its price and the server's allowance. */
    maxCostMicros?: number;
    /** What it is part of, of an agent: a task that it works on. */
    parentTaskId?: string;
}

/** Words of another agent, on their way. */
export interface Chunk {
    agent: string;
    text: string;
    task_id: string;
    original_id?: string;
    sessionKey?: string;
}

export interface DelegateOptions {
    /** The conversation to go on with; null: none. task.delegate says its
     * task's own by itself, unless one that it gave in it is not over. */
    sessionId?: string | null;
    /** A further turn of this task. */
    taskId?: string;
    /** On whose behalf; task.delegate says it by itself. */
    parentTaskId?: string;
    /** The last resort; default 180 000, 0: none. */
    timeoutMs?: number;
    onDisconnect?: 'keep' | 'cancel';
    metadata?: Record<string, unknown>;
    /** What it may cost at most, in micro-units. */
    maxCostMicros?: number;
    /** Hears its words as they come. */
    onChunk?: (chunk: Chunk) => void;
}

/** What came of a delegation. */
export interface DelegationResult {
    task_id: string;
    status: 'completed' | 'failed';
    text: string;
    metadata: Record<string, unknown>;
    error?: string;
    /** Of those that were delegated in two phases. */
    original_id?: string;
    /** Of the others. */
    sessionKey?: string;
}

/** Await it for the result. */
export interface Delegation extends PromiseLike<DelegationResult> {
    readonly id: string;
    readonly taskId: string | null;
    readonly accepted: Promise<{ status: string; task_id: string }>;
    catch<T>(no: (e: SignalboxError) => T): Promise<DelegationResult | T>;
    finally(last: () => void): Promise<DelegationResult>;
}

/** docs/protocol.md, "agent.delegate". */
export interface Order {
    agentId?: string;
    task: string;
    mode?: 'sync' | 'async';
    timeoutMs?: number;
    stream?: boolean;
    skill?: string;
    /** Of one before, to go on with it. */
    sessionKey?: string;
    onTimeout?: 'cancel' | 'continue';
    onDisconnect?: 'keep' | 'cancel';
    parent_task_id?: string;
}

export interface ToolOptions {
    /** With `stream`: hears the words as they come. */
    onChunk?: (chunk: Chunk) => void;
}

export interface Delegated {
    status: 'accepted' | 'completed' | 'timeout' | 'error';
    response?: string;
    sessionKey?: string;
    task_id?: string;
    error?: string;
    [field: string]: unknown;
}

/** Await it for the result, or iterate over it for the words as they come. */
export interface Reply extends PromiseLike<Result>, AsyncIterable<string> {
    /** The words as they come, with those of agents that it asked for help. */
    pieces(): AsyncIterable<{ agent: string; text: string }>;
    readonly accepted: Promise<Result>;
    readonly taskId: string | null;
    catch<T>(no: (e: SignalboxError) => T): Promise<Result | T>;
    finally(last: () => void): Promise<Result>;
}

export class Hub {
    private constructor();
    /** The name of the agent that this connection is; null: of none. */
    readonly agent: string | null;
    readonly isConnected: boolean;
    /**
     * Resolves after close(); rejects when the connection ended for good in
     * another way: the token is not good any more, another took over.
     */
    readonly closed: Promise<void>;
    register(
        card: Card,
        handler: Handler,
        options?: { concurrency?: number },
    ): Promise<Record<string, unknown>>;
    /** Changes fields of the agent's card. */
    update(card: Partial<Card>): Promise<Record<string, unknown>>;
    /** Says how the agent is: IDLE, BUSY, SLOW, ERROR …, and of when its data. */
    setState(
        state: string | null,
        options?: { dataAt?: string | number },
    ): Promise<unknown>;
    search(
        query: string,
        options?: { limit?: number; [option: string]: unknown },
    ): Promise<Record<string, unknown>[]>;
    send(text: string, options?: SendOptions): Reply;
    /** What was decided of it is `routing` of `accepted`. */
    sendEnvelope(envelope: Envelope): Reply;
    /**
     * Gives work to another agent, as the agent that this is. However often
     * the connection breaks, it is one task, and its result comes.
     */
    delegate(
        agentName: string,
        skill: string,
        message: string,
        options?: DelegateOptions,
    ): Delegation;
    /** The tool, for one or up to 16. */
    delegateToAgent(what: Order, options?: ToolOptions): Promise<Delegated>;
    delegateToAgent(what: Order[], options?: ToolOptions): Promise<Delegated[]>;
    /** How that delegation is now. */
    delegation(sessionKey: string): Promise<Delegated>;
    /**
     * For results of delegations without a waiting caller. The server
     * keeps them until the handler is done with them. To be set before
     * `register`.
     */
    onDelegationResult(
        handler: (result: DelegationResult) => void | Promise<void>,
    ): void;
    onDelegationChunk(handler: (chunk: Chunk) => void): void;
    /** GET /api/tools. */
    tools(format: 'openai' | 'anthropic'): Promise<Record<string, unknown>[]>;
    tools(): Promise<Record<string, Record<string, unknown>[]>>;
    getTask(id: string): Promise<Record<string, unknown>>;
    cancelTask(id: string): Promise<Record<string, unknown>>;
    /** Asks for any method of the server's. */
    call(
        method: string,
        params?: Record<string, unknown>,
        options?: { timeoutMs?: number },
    ): Promise<unknown>;
    close(options?: { graceMs?: number }): Promise<void>;
}
