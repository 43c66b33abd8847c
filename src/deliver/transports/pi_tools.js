/* The tools of Signalbox for pi: the server hands this to every pi that it
 * starts, with the list `tools` written before it.
 *
 * A call goes to the server as a dialog does, on the same pipe, so that the
 * server knows the task; what it answers is what the model is told. */
export default function (pi) {
  for (const { name, description, input_schema } of tools)
    pi.registerTool({
      name,
      label: name,
      description,
      promptSnippet: description,
      parameters: input_schema,
      async execute(_id, given, signal, _onUpdate, ctx) {
        const call = JSON.stringify({ tool: name, arguments: given });
        const text = await ctx.ui.input("signalbox.tool", call, { signal });
        if (text === undefined)
          throw new Error("the server did not answer: there is no task");
        return { content: [{ type: "text", text }], details: {} };
      },
    });
}
