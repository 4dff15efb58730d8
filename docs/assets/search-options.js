// The search takes a word with a dash in front for one that must not occur. Who types --follow looks for this option.
{
  const post = Worker.prototype.postMessage;
  const query = 2;
  Worker.prototype.postMessage = function (message, ...more) {
    const isQuery = message !== null && typeof message === "object" && message.type === query;
    const plain = isQuery ? { ...message, data: message.data.replace(/(^|\s)-+(?=\w)/g, "$1") } : message;
    return post.call(this, plain, ...more);
  };
}
