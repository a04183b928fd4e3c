// Browsers start no workers for pages that are opened as files. There the site's search runs in a hidden frame,
// which looks like a worker from both sides: the theme knows it by the name IFrameWorker.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.inside = frame.contentWindow;
    this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    this.inside.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
    this.ready = this.load(new URL(url, document.baseURI).href);
  }

  load(url) {
    return new Promise((loaded, failed) => {
      const script = this.inside.document.createElement("script");
      Object.assign(script, { src: url, onload: loaded, onerror: failed });
      this.inside.document.body.append(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.inside.frameElement.remove();
  }
}

if (location.protocol === "file:") Object.assign(globalThis, { IFrameWorker, Worker: IFrameWorker });
